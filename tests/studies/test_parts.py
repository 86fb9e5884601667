"""Parts of a study: whole families, the same wherever they are cut, and what is missing is named."""

from dataclasses import replace
from pathlib import Path

import pytest
import small_study

from grokscope.runs.packing import save_records
from grokscope.studies import Study, parts
from grokscope.studies.parts import missing_parts, part_file, parts_of
from grokscope.studies.run_set import Precision, Runs, RunSet

STUDY = small_study.STUDY


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of one family each."""
    monkeypatch.setattr(parts, "SECONDS", 1e-9)


def test_a_small_study_is_one_part() -> None:
    [part] = parts_of(STUDY, "float32", "cpu", "here")
    assert (part.number, part.of, part.study, part.plan.out, len(part.plan.runs)) == (1, 1, "small", "here", 4)
    assert part.steps == 2 * 12 + 2 * 6


@pytest.mark.usefixtures("small_parts")
def test_a_family_is_never_cut() -> None:
    found = parts_of(STUDY, "float32", n_seeds=3)
    assert [len(part.plan.runs) for part in found] == [2, 2, 2]
    for part in found:
        [fork] = [spec for spec in part.plan.runs if spec.fork]
        assert fork.fork.parent in {spec.content_hash for spec in part.plan.runs}
        assert {member.experiment for own in part.plan.made_for for member in own} == {"tiny", "forks"}


@pytest.mark.usefixtures("small_parts")
def test_parts_are_a_function_of_the_study_and_precision_alone() -> None:
    first, again = parts_of(STUDY, "float32", "cpu", "a"), parts_of(STUDY, "float32", "cuda", "b")
    assert [part.digest for part in first] == [part.digest for part in again]
    assert len({part.digest for part in first}) == len(first)
    assert [part.digest for part in parts_of(STUDY, "tf32")] != [part.digest for part in first]


def test_each_run_set_is_trained_and_measured_in_its_own_way() -> None:
    sets = (
        RunSet("plain", {"tiny": small_study.tiny}, measures=("fsd",), plan_options={"keep": "none"}),
        RunSet("forked", {"tiny": small_study.tiny, "forks": small_study.forks}, plan_options={"signals": True}),
    )
    plain, forked = parts_of(replace(STUDY, run_sets=sets), "float32")
    assert (plain.title, plain.plan.measures, plain.plan.keep, plain.plan.signals) == ("plain", ("fsd",), "none", False)
    assert (forked.title, forked.plan.measures, forked.plan.keep, forked.plan.signals) == ("forked", (), "forks", True)


@pytest.mark.usefixtures("small_parts")
def test_a_part_leaves_out_readings_that_none_of_its_runs_has() -> None:
    def groups(n: int | None, precision: Precision) -> Runs:
        return {
            f"S3_s{seed}": replace(spec, task="S3") for seed, spec in enumerate(small_study.tiny(1, precision).values())
        }

    def products(n: int | None, precision: Precision) -> Runs:
        return {name: replace(spec, task="mult_mod5") for name, spec in small_study.tiny(1, precision).items()}

    both = RunSet("both", {"groups": groups, "products": products}, measures=("fsd", "fsd@sum", "fsd@additive"))
    given = replace(STUDY, claims=(), message=(), experiments=both.experiments, run_sets=(both,))
    of_groups, of_products = parts_of(given, "float32")
    assert of_groups.plan.measures == ("fsd", "fsd@sum")
    assert of_products.plan.measures == both.measures


def store(given: Study, folder: Path, **changes: object) -> None:
    for part in parts_of(given, "float32"):
        about = part.head | {"commit": "aaaa", "finished": len(part.plan.runs)}
        save_records(part_file(folder, part.number), [], about | (changes if part.number == 2 else {}))


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({}, None),
        ({"commit": "bbbb"}, "from commit bbbb, the others are from aaaa"),
        ({"commit": "aaaa, bbbb"}, "from commit aaaa, bbbb, the others are from aaaa"),
        ({"runs": "0"}, "made by another plan than this version's, at commit aaaa"),
        ({"study": "other"}, "made by another plan than this version's, at commit aaaa"),
        ({"finished": 1}, "lacks 1 run of 2"),
    ],
)
def test_what_is_wrong_with_a_part_is_named(changes: dict[str, object], problem: str | None, tmp_path: Path) -> None:
    study = replace(STUDY, experiments={"tiny": _three, "forks": _three_forks})
    store(study, tmp_path, **changes)
    found = missing_parts(parts_of(study, "float32"), tmp_path)
    assert found == ({} if problem is None else {2: problem})


@pytest.mark.usefixtures("small_parts")
def test_missing_and_unreadable_parts_are_named(tmp_path: Path) -> None:
    store(STUDY, tmp_path)
    part_file(tmp_path, 1).unlink()
    part_file(tmp_path, 2).write_bytes(b"torn")
    found = missing_parts(parts_of(STUDY, "float32"), tmp_path)
    assert found[1] == "missing"
    assert "cannot be read" in found[2]


def _three(n_seeds: int | None, precision: str) -> dict[str, object]:
    return small_study.tiny(3, precision)


def _three_forks(n_seeds: int | None, precision: str) -> dict[str, object]:
    return small_study.forks(3, precision)
