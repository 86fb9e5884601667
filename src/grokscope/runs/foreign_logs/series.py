"""One column of a log of any length, in bounded memory."""

from collections.abc import Iterable
from math import isnan

__all__ = ["Series"]


class Series:
    """Values by step, in whatever order they come; of a step that comes twice, the last value.

    `halve` doubles the stride: of the steps in [k·stride, (k + 1)·stride) only the first is kept. The first steps at
    which given levels were reached are always kept, so that thinning moves no event.

    >>> series = Series(levels=(0.95,))
    >>> for step in range(8):
    ...     series.add(step, 1.0 if step > 4 else 0.0)
    >>> series.halve()
    >>> series.halve()
    >>> series.points()
    {0: 0.0, 4: 0.0, 5: 1.0}
    """

    def __init__(self, levels: Iterable[float] = ()) -> None:
        self.stride = 1
        self.least, self.most = float("inf"), float("-inf")
        self.repeated = 0
        self._kept: dict[int, tuple[int, float]] = {}
        self._first: dict[float, tuple[int, float] | None] = dict.fromkeys(levels)

    def __len__(self) -> int:
        return len(self._kept)

    def add(self, step: int, value: float) -> None:
        """Note a value; NaN is one that is no number."""
        place = step // self.stride
        known = self._kept.get(place)
        if known is None or step <= known[0]:
            if known is not None and known[0] == step:
                self.repeated += known[1] != value and not (isnan(known[1]) and isnan(value))
            self._kept[place] = (step, value)
        if value < self.least:
            self.least = value
        if value > self.most:
            self.most = value
        for level, first in self._first.items():
            if value >= level and (first is None or step < first[0]):
                self._first[level] = (step, value)

    def halve(self) -> None:
        """Keep one of two."""
        self.stride *= 2
        found: dict[int, tuple[int, float]] = {}
        for step, value in self._kept.values():
            place = step // self.stride
            if place not in found or step < found[place][0]:
                found[place] = (step, value)
        self._kept = found

    def points(self) -> dict[int, float]:
        """The kept values by step, in rising order."""
        firsts = [first for first in self._first.values() if first] if self.stride > 1 else []
        return dict(sorted([*self._kept.values(), *firsts]))
