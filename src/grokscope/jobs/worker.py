"""`python -m grokscope.jobs.worker --spec plan.json`: train a plan's runs, with the core packages only.

A plan that a store keeps is named instead by `--store DIR --plan NAME`. Any number of workers may share one plan and
one store: each takes the runs that no other holds. A worker reports evaluations as JSON lines on standard output.
Asked to stop (SIGTERM, SIGINT, SIGUSR1, SIGUSR2, or `grokscope cancel`) it stores everything and exits with status 75,
which schedulers read as "try again later"; the same command then continues. A second Ctrl-C ends it at once; what
schedulers repeat (SLURM sends SIGTERM twice when it preempts a job) changes nothing.
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
from typing import Any

import torch

from grokscope.errors import InputError
from grokscope.jobs import Notice, Progress, Stopped, run_all
from grokscope.runs import Measuring, Store, open_store
from grokscope.runs.plans import kept_plan, read_plan
from grokscope.specs import Plan

__all__ = ["BAD_INPUT", "TRY_AGAIN", "as_line", "main", "stop_requests", "work"]

BAD_INPUT, TRY_AGAIN = 2, 75
STOPS = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2)
LIFE_EVERY, CANCELLED_EVERY = 30.0, 2.0  # seconds between signs of life, and checks whether the sweep was cancelled


def main(arguments: Sequence[str] | None = None) -> int:
    """Train the plan's unfinished runs; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m grokscope.jobs.worker", description=__doc__)
    parser.add_argument("--spec", type=Path, help="the plan, as `grokscope train --plan-only` writes it")
    parser.add_argument("--store", help="a folder of runs, or a remote address, that keeps the plan")
    parser.add_argument("--plan", help="the plan's name there")
    requests: list[int] = []
    _listen(requests)
    chosen = parser.parse_args(arguments)
    if (chosen.spec is None) is (chosen.store is None or chosen.plan is None):
        parser.error("a plan is named by --spec, or by --store and --plan")
    try:
        plan = read_plan(chosen.spec) if chosen.spec else _kept(chosen.plan, chosen.store)
        work(plan, _print, requests, lambda: print(json.dumps({"alive": True}), flush=True))
    except InputError as error:
        print(f"grokscope: {error}", file=sys.stderr)
        return BAD_INPUT
    except Stopped:
        return TRY_AGAIN
    return 0


def _kept(name: str, address: str) -> Plan:
    with open_store(address) as store:
        return kept_plan(name, store)


def work(
    plan: Plan,
    report: Callable[[Progress | Notice], None],
    requests: Sequence[int] = (),
    live: Callable[[], None] = lambda: None,
) -> None:
    """Train the plan's unfinished runs in this process, until a stop is requested or the sweep is cancelled.

    >>> from tempfile import TemporaryDirectory
    >>> from grokscope.specs import RunSpec
    >>> from grokscope.runs import Store
    >>> small = {"layers": 1, "width": 8, "heads": 1, "mlp_width": 16, "steps": 2, "batch_size": 4}
    >>> spec = RunSpec("add_mod5").with_values(small)
    >>> with TemporaryDirectory() as folder:
    ...     work(Plan(folder, (spec,)), lambda message: None)
    ...     Store(folder).is_finished(spec)
    True
    """
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
            should_stop=_stops(store, requests, live),
            stop_after_grokking=plan.stop_after_grokking,
            measuring=Measuring.from_plan(plan),
            made_for=plan.memberships,
        )


def as_line(message: Progress | Notice) -> dict[str, Any]:
    """What a worker reports, as it is written in a line of JSON.

    >>> as_line(Progress("add_mod97_s0", step=100, last=8000, row={"fsd": float("nan")}))
    {'run': 'add_mod97_s0', 'step': 100, 'last': 8000, 'row': {'fsd': None}}
    """
    facts = asdict(message)
    if isinstance(message, Progress):
        facts["row"] = {key: value if isfinite(value) else None for key, value in message.row.items()}
    return facts


@contextmanager
def stop_requests() -> Iterator[list[int]]:
    """A list of the signals that ask this process to stop; afterwards signals mean what they meant before.

    >>> with stop_requests() as requests:
    ...     signal.raise_signal(signal.SIGTERM)
    ...     [signal.Signals(number).name for number in requests]
    ['SIGTERM']
    """
    requests: list[int] = []
    before = _listen(requests)
    try:
        yield requests
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _listen(requests: list[int]) -> dict[signal.Signals, Any]:
    def note(number: int, frame: object) -> None:
        if requests and number == signal.SIGINT:  # a person has waited long enough: the store survives a kill
            os._exit(TRY_AGAIN)
        requests.append(number)

    return {number: signal.signal(number, note) for number in STOPS}


def _stops(store: Store, requests: Sequence[int], live: Callable[[], None]) -> Callable[[], bool]:
    """Called between any two evaluations; now and then it gives a sign of life, and checks for a cancelled sweep."""
    shown = checked = time.monotonic()
    cancelled = store.is_cancelled

    def should_stop() -> bool:
        nonlocal shown, checked, cancelled
        now = time.monotonic()
        if now - shown > LIFE_EVERY:
            live()
            shown = now
        if now - checked > CANCELLED_EVERY:
            checked, cancelled = now, store.is_cancelled
        return bool(requests) or cancelled

    return should_stop


def _print(message: Progress | Notice) -> None:
    print(json.dumps(as_line(message)), flush=True)


if __name__ == "__main__":
    sys.exit(main())
