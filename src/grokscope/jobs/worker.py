"""`python -m grokscope.jobs.worker --spec plan.json`: train a plan's runs, with the core packages only.

Any number of workers may share one plan and one store: each takes the runs that no other holds. A worker says what it
sees as JSON lines on standard output. Asked to stop (SIGTERM, SIGINT, SIGUSR1, SIGUSR2, or `grokscope cancel`) it
stores everything and exits with status 75, which schedulers read as "try again later"; the same command then continues.
Asked twice it exits at once.
"""

import argparse
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from math import isfinite
from pathlib import Path
from types import FrameType
from typing import Any

import torch

from grokscope.errors import InputError
from grokscope.jobs import Notice, Progress, Stopped, run_all
from grokscope.runs import Measuring, Store, open_store
from grokscope.runs.plans import read_plan
from grokscope.specs import Plan

__all__ = ["BAD_INPUT", "TRY_AGAIN", "listening", "main", "spoken", "work"]

BAD_INPUT, TRY_AGAIN = 2, 75
STOPS = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2)
LIFE_EVERY, CANCELLED_EVERY = 30.0, 2.0  # seconds between signs of life, and looks whether the sweep was cancelled


def main(arguments: Sequence[str] | None = None) -> int:
    """Train the plan's unfinished runs; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m grokscope.jobs.worker", description=__doc__)
    parser.add_argument("--spec", type=Path, required=True, help="the plan, as `grokscope train --plan-only` writes it")
    asked: list[int] = []
    _listen(asked)
    try:
        plan = read_plan(parser.parse_args(arguments).spec)
        work(plan, _say, asked, lambda: print(json.dumps({"alive": True}), flush=True))
    except InputError as error:
        print(f"grokscope: {error}", file=sys.stderr)
        return BAD_INPUT
    except Stopped:
        return TRY_AGAIN
    return 0


def work(
    plan: Plan,
    report: Callable[[Progress | Notice], None],
    asked: Sequence[int] = (),
    live: Callable[[], None] = lambda: None,
) -> None:
    """Train the plan's unfinished runs in this process, until `asked` holds something or the sweep is cancelled."""
    if plan.device == "cpu":
        torch.set_num_threads(1)  # one worker per core, one thread each: two threads on one run only get in the way
    if plan.deterministic:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # read by cuBLAS at its first use
        torch.use_deterministic_algorithms(True)
        from torch._inductor import config as inductor  # a second to import, so only where it is needed

        # Else kernels are chosen by timing them, and numbers are rounded as that falls out.
        inductor.deterministic, inductor.triton.autotune_pointwise = True, False
    with open_store(plan.out) as store:
        run_all(
            plan.runs,
            store,
            device=plan.device,
            keep=plan.keep,
            report=report,
            should_stop=_stops(store, asked, live),
            stop_after_grokking=plan.stop_after_grokking,
            measuring=Measuring.asked_by(plan),
        )


def spoken(said: Progress | Notice) -> dict[str, Any]:
    """What a worker says, as it is written in a line of JSON."""
    facts = asdict(said)
    if isinstance(said, Progress):
        facts["row"] = {key: value if isfinite(value) else None for key, value in said.row.items()}
    return facts


@contextmanager
def listening() -> Iterator[list[int]]:
    """A list that is filled when somebody asks this process to stop; afterwards signals mean what they meant before."""
    asked: list[int] = []
    before = _listen(asked)
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _listen(asked: list[int]) -> dict[signal.Signals, Any]:
    def note(number: int, frame: FrameType | None) -> None:
        if asked:  # the second time at once: the store survives a kill
            os._exit(TRY_AGAIN)
        asked.append(number)

    return {number: signal.signal(number, note) for number in STOPS}


def _stops(store: Store, asked: Sequence[int], live: Callable[[], None]) -> Callable[[], bool]:
    """Asked between any two looks; now and then it shows that we live, and sees whether the sweep was cancelled."""
    shown = looked = time.monotonic()
    cancelled = store.is_cancelled

    def should_stop() -> bool:
        nonlocal shown, looked, cancelled
        now = time.monotonic()
        if now - shown > LIFE_EVERY:
            live()
            shown = now
        if now - looked > CANCELLED_EVERY:
            looked, cancelled = now, store.is_cancelled
        return bool(asked) or cancelled

    return should_stop


def _say(said: Progress | Notice) -> None:
    print(json.dumps(spoken(said)), flush=True)


if __name__ == "__main__":
    sys.exit(main())
