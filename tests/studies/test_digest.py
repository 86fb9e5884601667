"""The digest of a quantity's code: whatever its function calls or names changes it."""

import sys
from pathlib import Path

import pytest

from grokscope.studies import find_study
from grokscope.studies.digest import code_digest
from grokscope.studies.synchronization import STUDY

LINES = """
from grokscope.studies import Study
from . import helpers
LEVEL = (1, 2)
def inner(values): return [one for one in values if one > LEVEL[0]]
def outer(records): return helpers.total(inner(records))
def unrelated(): return 1
STUDY = Study("small", "A small study", {})
"""
HELPERS = """
SCALE = 2.0
class Sum:
    def of(self, values): return SCALE * sum(values)
def total(values): return Sum().of(values)
"""


def digest(folder: Path, lines: str = LINES, helpers: str = HELPERS) -> str:
    own = folder / "same"
    own.mkdir(parents=True)
    (own / "study.py").write_text(lines)
    (own / "helpers.py").write_text(helpers)
    sys.modules.pop("grokscope_study_same.helpers", None)
    find_study(str(own))
    return code_digest(sys.modules["grokscope_study_same"].outer)


@pytest.mark.parametrize(
    ("old", "new", "is_same"),
    [
        ("> LEVEL[0]", ">= LEVEL[0]", False),
        ("(1, 2)", "(1, 3)", False),
        ("SCALE = 2.0", "SCALE = 2.5", False),
        ("* sum(values)", "* max(values)", False),
        ("return 1", "return 2", True),
    ],
)
def test_a_changed_helper_or_constant_changes_it(tmp_path: Path, old: str, new: str, is_same: bool) -> None:
    before = digest(tmp_path / "a")
    after = digest(tmp_path / "b", LINES.replace(old, new), HELPERS.replace(old, new))
    assert (before == after) is is_same


def test_everything_that_reads_a_run_for_a_claim_has_one() -> None:
    assert all(len(code_digest(claim.estimand.read)) == 64 for claim in STUDY.claims)
