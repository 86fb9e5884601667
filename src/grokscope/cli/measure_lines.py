"""Lines that say how far a measurement is, where no bar can be drawn: in a log, a pipe or a notebook."""

import sys
import time
from collections.abc import Callable
from threading import Timer
from types import TracebackType
from typing import Self

from grokscope.cli.frames import duration
from grokscope.errors import plural, shown

__all__ = ["PATIENCE", "MeasuringLines"]

PATIENCE = 2.0  # seconds without a line


class MeasuringLines:
    """Prints on stderr how many checkpoints are measured, if that takes more than two seconds, at most every two.

    >>> with MeasuringLines("add_mod97_s0", total=2) as lines:  # both are fast: nothing is printed
    ...     lines.advance(2)
    """

    def __init__(self, name: str, total: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.name, self.total, self.clock = name if name.isprintable() else shown(name), total, clock
        self.done, self.began = 0, clock()
        self.said = self.began
        # The first checkpoints may take a minute together, and nothing is reported before they are measured.
        self.timer = Timer(PATIENCE, self._say)
        self.timer.daemon = True

    def __enter__(self) -> Self:
        self.timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.timer.cancel()

    def advance(self, count: int) -> None:
        """Take note that some more checkpoints are measured."""
        self.done += count
        if self.done < self.total and self.clock() - self.said >= PATIENCE:
            self._say()

    def _say(self) -> None:
        self.said = self.clock()
        left = ""
        if self.done:
            left = f", about {duration((self.said - self.began) / self.done * (self.total - self.done))} left"
        count = f"{self.done:,} of {plural(self.total, 'checkpoint')}"
        print(f"measuring {self.name}: {count}{left}", file=sys.stderr, flush=True)
