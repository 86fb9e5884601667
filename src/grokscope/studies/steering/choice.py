"""Write what the tuning runs choose, before the final runs: the setting of each family, best family first.

`python -m grokscope.studies.steering.choice --from runs/tuning` reads folders of runs or packed records.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from grokscope.errors import InputError
from grokscope.files import write_atomically
from grokscope.studies.sources import read_evidence
from grokscope.studies.steering import STUDY
from grokscope.studies.steering.arms import CHOICE_FILE, FAMILIES
from grokscope.studies.steering.quantities import choose_settings

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Choose from the tuning runs in these places, and write the choice."""
    parser = argparse.ArgumentParser(prog="python -m grokscope.studies.steering.choice", description=__doc__)
    parser.add_argument("--from", dest="sources", type=Path, nargs="+", required=True, help="folders or packed records")
    parser.add_argument("--out", type=Path, default=CHOICE_FILE, help="the file to write; the study reads its own")
    given = parser.parse_args(arguments)
    found = read_evidence(STUDY, *given.sources).experiment("tuning")
    lacking = {name.split("/")[1] for name in STUDY.runs()["tuning"].keys() - found.keys()}
    chosen = choose_settings(found)
    if missing := [family for family in FAMILIES if family in lacking or family not in chosen]:
        raise InputError(f"the tuning runs of {', '.join(missing)} are not all there: nothing was chosen")
    write_atomically(given.out, (json.dumps(chosen, indent=1, ensure_ascii=False) + "\n").encode())
    print("\n".join(f"{family}: {setting}" for family, setting in chosen.items()))


if __name__ == "__main__":
    main()
