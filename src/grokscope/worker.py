"""`python -m grokscope.worker --spec plan.json`: train a plan's runs, with the core packages only.

Any number of workers may share one plan and one store: each takes the runs that no other holds. A worker says what it
sees as JSON lines on standard output. Asked to stop (SIGTERM, SIGINT or SIGUSR1) it stores everything and exits with
status 75, which schedulers read as "try again later"; the same command then continues. Asked twice it exits at once.
"""

import argparse
import json
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import asdict
from math import isfinite
from pathlib import Path
from types import FrameType

import torch

from grokscope.errors import InputError
from grokscope.experiments import Measuring, Progress, Stopped, Store, run_all
from grokscope.specs import Plan

__all__ = ["BAD_INPUT", "TRY_AGAIN", "main"]

BAD_INPUT, TRY_AGAIN = 2, 75


def main(arguments: Sequence[str] | None = None) -> int:
    """Train the plan's unfinished runs; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m grokscope.worker", description=__doc__)
    parser.add_argument("--spec", type=Path, required=True, help="the plan, as `grokscope train --plan-only` writes it")
    asked = _listen()
    try:
        plan = _plan(parser.parse_args(arguments).spec)
        if plan.device == "cpu":
            torch.set_num_threads(1)  # one worker per core, one thread each: two threads on one run only get in the way
        if plan.deterministic:
            os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # read by cuBLAS at its first use
            torch.use_deterministic_algorithms(True)
            from torch._inductor import config as inductor  # a second to import, so only where it is needed

            # Else kernels are chosen by timing them, and numbers are rounded as that falls out.
            inductor.deterministic, inductor.triton.autotune_pointwise = True, False
        run_all(
            plan.runs,
            Store(plan.out),
            device=plan.device,
            keep=plan.keep,
            report=_say,
            should_stop=lambda: bool(asked),
            stop_after_grokking=plan.stop_after_grokking,
            measuring=Measuring.asked_by(plan),
        )
    except InputError as error:
        print(f"grokscope: {error}", file=sys.stderr)
        return BAD_INPUT
    except Stopped:
        return TRY_AGAIN
    return 0


def _plan(path: Path) -> Plan:
    try:
        return Plan.from_json(path.read_text())
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"the plan {path} cannot be read: {error}") from None


def _listen() -> list[int]:
    """A list that is filled when somebody asks to stop."""
    asked: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        if asked:  # the second time at once: the store survives a kill
            os._exit(TRY_AGAIN)
        asked.append(number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
        signal.signal(number, note)
    return asked


def _say(progress: Progress) -> None:
    facts = asdict(progress)
    facts["row"] = {key: value if isfinite(value) else None for key, value in progress.row.items()}
    print(json.dumps(facts), flush=True)


if __name__ == "__main__":
    sys.exit(main())
