"""Writes docs/damage.md: every damage that the tests do to a folder of runs, and what each command makes of it.

`python docs/make_damage.py` takes some minutes; `tests/cli/test_damage.py` compares the page with what it sees.
"""

import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

DOCS = Path(__file__).parent
PAGE = DOCS / "damage.md"
HEAD = """# Damaged folders

What each command makes of a folder of three runs, two that have ended and one that was stopped, after one damage. The
page is written by `docs/make_damage.py`, and the tests hold it to what they see: no command fails with a traceback,
none takes longer than five seconds, and none hides another run.

Files are bound to their run. The folder's name ends in the content hash of `spec.json`; each line of a log has a
checksum that begins with that hash; the manifest names the run and the digest of each checkpoint; and `outcome.json`,
written last, names the run and the digests of its logs and its manifest, and has a digest of its own. Whoever reads a
file checks these first. Nothing in a run's folder is read through a link, and nothing but a regular file of a sensible
size is opened.

| word | meaning |
|---|---|
| – | the command says what it says of the undamaged folder |
| shown | the command says that the run, or the plan, is damaged, and shows all others |
| rejected | the command was asked for this one run: one sentence, exit status 2 |
| differs | the command shows less of the run, or the run as it is now |
| found | `grokscope doctor` names it |
| repaired | `grokscope doctor --repair` puts right what is there; `resume` computes what was lost |
| kept | `grokscope doctor --repair` leaves it as it is |

"""


def page(rows: Mapping[str, Mapping[str, str]]) -> str:
    """The whole page, from a row for each damage."""
    columns = list(next(iter(rows.values())))
    lines = [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
    lines += [f"| {' | '.join(row[name] for name in columns)} |" for row in rows.values()]
    return f"{HEAD}{len(rows)} damages:\n\n" + "\n".join(lines) + "\n"


def read_page() -> dict[tuple[str, str, str], dict[str, str]]:
    """The rows of the page as it is stored, by run, file and damage."""
    rows = [line.strip("|\n ").split(" | ") for line in PAGE.read_text().partition("damages:")[2].splitlines()]
    columns, _, *cells = [row for row in rows if len(row) > 1 or row[0].startswith("---")]
    return {(row[0], row[1], row[2]): dict(zip(columns, [*row, ""], strict=False)) for row in cells}


def main() -> None:
    """Do every damage, ask every command, and write the page."""
    sys.path[:0] = [str(DOCS.parent / "tests" / "cli"), str(DOCS.parent / "tests")]
    from damage_cases import CASES, Bench, row_of, workplace

    with workplace(), tempfile.TemporaryDirectory() as temporary:
        bench = Bench(Path(temporary))
        PAGE.write_text(page({name: row_of(bench, case) for name, case in CASES.items()}))


if __name__ == "__main__":
    main()
