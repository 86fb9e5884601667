"""Write what the tuning runs choose, before the final runs: the setting of each family, best family first.

`python -m grokscope.studies.steering.choice --from results/steering` reads folders of runs or packed records.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from grokscope.errors import InputError
from grokscope.files import write_atomically
from grokscope.jobs.worker import BAD_INPUT
from grokscope.studies.sources import read_evidence
from grokscope.studies.steering import STUDY
from grokscope.studies.steering.arms import CHOICE_FILE, FAMILIES
from grokscope.studies.steering.quantities import choose_settings

__all__ = ["choose", "main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Choose from the tuning runs in these places, and write the choice; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m grokscope.studies.steering.choice", description=__doc__)
    parser.add_argument("--from", dest="sources", type=Path, nargs="+", required=True, help="folders or packed records")
    parser.add_argument("--out", type=Path, default=CHOICE_FILE, help="the file to write; the study reads its own")
    given = parser.parse_args(arguments)
    try:
        chosen = choose(given.sources)
        write_atomically(given.out, (json.dumps(chosen, indent=1, ensure_ascii=False) + "\n").encode())
    except InputError as error:
        print(f"grokscope: {error}", file=sys.stderr)
        return BAD_INPUT
    print("\n".join(f"{family}: {setting}" for family, setting in chosen.items()))
    print(f"wrote {given.out}")
    return 0


def choose(sources: Sequence[Path]) -> dict[str, str]:
    """The setting of each family, best family first, from all tuning runs; nothing is chosen from some of them.

    Example::

        choose([Path("results/steering")])
    """
    found, planned = read_evidence(STUDY, *sources).experiment("tuning"), STUDY.runs()["tuning"]
    if lacking := planned.keys() - found.keys():
        families = [family for family in FAMILIES if any(name.split("/")[1] == family for name in lacking)]
        counts = f"{len(lacking):,} of {len(planned):,} tuning runs are not there"
        raise InputError(f"{counts}, of {'; '.join(families)}: nothing was chosen")
    return choose_settings(found)


if __name__ == "__main__":
    sys.exit(main())
