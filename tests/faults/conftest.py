"""Counts what was injected and what survived; `make faults` prints it at the end."""

from collections.abc import Iterator

import pytest
from small_runs import Count

TOTALS = {"injected": 0, "survived": 0}


@pytest.fixture
def injected(request: pytest.FixtureRequest) -> Iterator[Count]:
    """Called once per fault; all of a test's faults have survived if the test passes."""
    here: list[int] = []
    yield lambda count=1: here.append(count)
    TOTALS["injected"] += sum(here)
    if not getattr(request.node, "failed", False):
        TOTALS["survived"] += sum(here)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """A test that fails has lost what it injected."""
    report = yield
    item.failed = getattr(item, "failed", False) or report.failed  # type: ignore[attr-defined]
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The counts."""
    if TOTALS["injected"]:
        lost = TOTALS["injected"] - TOTALS["survived"]
        told = f"faults injected {TOTALS['injected']}, survived {TOTALS['survived']}, lost {lost}"
        terminalreporter.write_line(told)
