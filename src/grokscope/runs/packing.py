"""`python -m grokscope.runs.packing --spec plan.json --out records.gz`: what is finished of a plan, in one file.

Stores do not travel well; this file does. It needs the core packages only, and can be written at any time.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from grokscope.errors import InputError
from grokscope.runs.plans import read_plan
from grokscope.runs.records import RunRecord, record_of, save_records
from grokscope.runs.run_folder import run_name
from grokscope.runs.store import Store
from grokscope.specs import Plan

__all__ = ["finished_records", "main"]

BAD_INPUT = 2


def finished_records(plan: Plan) -> list[RunRecord]:
    """The records of the plan's finished runs, in the order of the plan."""
    by_name = {folder.name: folder for folder in Store(plan.out) if folder.outcome is not None}
    return [record_of(by_name[name]) for name in map(run_name, plan.runs) if name in by_name]


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the records, and say how many there are; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m grokscope.runs.packing", description=__doc__)
    parser.add_argument("--spec", type=Path, required=True, help="the plan, as a command's `--plan-only` writes it")
    parser.add_argument("--out", type=Path, required=True, help="the file of records, FILE.gz")
    chosen = parser.parse_args(arguments)
    try:
        plan = read_plan(chosen.spec)
        records = finished_records(plan)
        save_records(chosen.out, records)
    except InputError as error:
        print(f"grokscope: {error}", file=sys.stderr)
        return BAD_INPUT
    print(f"wrote {chosen.out}: {len(records)} of {len(plan.runs)} runs")
    return 0


if __name__ == "__main__":
    sys.exit(main())
