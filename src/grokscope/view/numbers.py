"""Numbers as a person reads them: thousands apart, a true minus, "never" where a step was not reached."""

from collections.abc import Iterable
from math import isinf, isnan

from grokscope.stats import Estimate

__all__ = ["format_estimate", "format_number", "format_percent", "format_range", "format_step"]


def format_number(value: float | int | None, digits: int = 0, *, signed: bool = False) -> str:
    """A number with so many digits after the point; "never" for None and infinity, "undefined" for NaN.

    >>> format_number(-1722.2), format_number(0.4999, 2), format_number(None), format_number(250, signed=True)
    ('−1,722', '0.50', 'never', '+250')
    >>> format_number(-0.2), format_number(float("nan"))
    ('0', 'undefined')
    """
    if value is None or isinf(value):
        return "never"
    if isnan(value):
        return "undefined"
    shown = f"{abs(value):,.{digits}f}"
    if value < 0 and shown.strip("0.,"):
        return f"−{shown}"
    return f"+{shown}" if signed and value > 0 else shown


def format_percent(value: float | int | None) -> str:
    """A share in percent.

    >>> format_percent(-0.7059), format_percent(0.09), format_percent(None)
    ('−71 %', '9 %', 'never')
    """
    shown = format_number(None if value is None else 100 * value)
    return shown if shown in ("never", "undefined") else f"{shown} %"


def format_estimate(estimate: Estimate, digits: int = 0) -> str:
    """An estimate with its interval, where it has one.

    >>> format_estimate(Estimate(1722.0, 1111.0, 2333.0, 9))
    '1,722 [1,111, 2,333]'
    """
    value, low, high = (format_number(number, digits) for number in (estimate.value, estimate.low, estimate.high))
    return value if isnan(estimate.low) or isnan(estimate.high) else f"{value} [{low}, {high}]"


def format_range(counts: Iterable[int]) -> str:
    """From the smallest to the largest.

    >>> format_range([3, 31, 3]), format_range([4, 4]), format_range([])
    ('3 to 31', '4', '0')
    """
    ends = sorted({*counts})
    return " to ".join(map(str, (ends[:1] + ends[-1:]) if len(ends) > 1 else ends)) or "0"


def format_step(step: int | None) -> str:
    """A step; "never" where it was not reached.

    >>> format_step(4200), format_step(None)
    ('4,200', 'never')
    """
    return format_number(step)
