"""Studies: their plans, what each item needs, and where they are found."""

from dataclasses import replace
from math import isnan
from pathlib import Path
from typing import Any

import pytest
from planted import run
from small_study import STUDY as SMALL

from grokscope.errors import InputError
from grokscope.jobs import Stopped, run_all
from grokscope.runs import Measuring, Store
from grokscope.specs import Membership
from grokscope.studies import Evidence, find_study, study_names
from grokscope.studies.evidence import QUICK
from grokscope.studies.sources import stored_records
from grokscope.studies.synchronization import STUDY
from grokscope.view.charts.figure import Figure
from grokscope.view.table import Table

pytestmark = pytest.mark.usefixtures("quick_disk")

EXAMPLE = Path(__file__).parents[2] / "examples" / "own_study"


def test_a_plan_has_every_run_once_and_every_forks_parent() -> None:
    plan = STUDY.plan(["fork", "spread", "accelerator"], "out", n_seeds=4)
    hashes = [spec.content_hash for spec in plan.runs]
    assert len(set(hashes)) == len(hashes)
    assert {spec.fork.parent for spec in plan.runs if spec.fork} <= set(hashes)
    assert plan.keep == "forks"
    assert plan.to_json() == STUDY.plan(["fork", "spread", "accelerator"], "out", n_seeds=4).to_json()


def test_every_run_of_a_plan_says_what_it_is_for() -> None:
    plan = STUDY.plan(["fork"], "out")
    places = dict(zip(plan.runs, plan.made_for, strict=True))
    parent = next(spec for spec in plan.runs if spec.fork is None)
    assert Membership("synchronization", "base", "add_mod97_s42") in places[parent]
    assert all(places.values())
    quick = STUDY.plan(["fork"], "out", quick=True)
    assert {member.study for members in quick.made_for for member in members} == {"synchronization" + QUICK}


def test_items_need_their_experiments_and_unknown_ones_are_rejected() -> None:
    assert SMALL.experiments_for(["tab-norm"]) == ("tiny",)
    assert SMALL.experiments_for(["all"]) == ("tiny", "forks")
    assert SMALL.experiments_for(["all"], ["fig-norm"]) == ("forks",)
    with pytest.raises(InputError, match="small has nothing called 'tab-nrom'; did you mean 'tab-norm'"):
        SMALL.experiments_for(["tab-nrom"])
    with pytest.raises(InputError, match="has no quick version"):
        SMALL.runs(quick=True)
    with pytest.raises(InputError, match="all that was asked for is left out"):
        SMALL.plan([], "out")


def test_from_plan_through_an_interruption_to_evidence(tmp_path: Path) -> None:
    plan = SMALL.plan(["tiny", "forks"], str(tmp_path))
    store, calls = Store(plan.out), iter(range(1000))
    options = {
        "keep": plan.keep,
        "measuring": Measuring.from_plan(plan),
        "compiled": False,
        "made_for": plan.memberships,
    }
    with pytest.raises(Stopped):
        run_all(plan.runs, store, **options, should_stop=lambda: next(calls) == 6)
    assert len(stored_records(store)) < len(plan.runs)
    run_all(plan.runs, store, **options)
    evidence = SMALL.evidence(stored_records(store))
    assert {name: list(runs) for name, runs in evidence.records.items()} == {
        "tiny": ["tiny_s0", "tiny_s1"],
        "forks": ["tiny_s0_x1", "tiny_s1_x1"],
    }
    measured = evidence.experiment("tiny")["tiny_s0"].checkpoints
    assert measured["step"] == [0, 6, 12]
    assert [isnan(x) for x in measured["without_mode_loss"]] == [
        True,
        True,
        False,
    ]  # what is expensive, at the end only
    assert evidence.experiment("forks")["tiny_s0_x1"].checkpoints == {}
    assert evidence.experiment("forks")["tiny_s0_x1"].timeline.first == 6


def test_records_have_the_studys_order_wherever_they_were_stored() -> None:
    runs = SMALL.runs(12)["tiny"]
    records = [run(spec) for spec in runs.values()]
    places = [Membership("small", "tiny", name) for name in runs]
    shuffled = [
        replace(record, made_for=(place,)) for record, place in reversed(list(zip(records, places, strict=True)))
    ]
    assert list(SMALL.evidence(shuffled).records["tiny"]) == list(runs)


def test_studies_are_found_by_name_and_by_folder(tmp_path: Path) -> None:
    assert [find_study(name).name for name in study_names()] == list(study_names())
    assert find_study(str(EXAMPLE)).name == "decay"
    with pytest.raises(InputError, match="there is no study and no folder 'synchronisation'; did you mean"):
        find_study("synchronisation")
    with pytest.raises(InputError, match=r"has no study\.py"):
        find_study(str(tmp_path))
    (tmp_path / "study.py").write_text("x = 1\n")
    with pytest.raises(InputError, match="defines no STUDY"):
        find_study(str(tmp_path))
    (tmp_path / "study.py").write_text("def\n")
    with pytest.raises(InputError, match="cannot be loaded"):
        find_study(str(tmp_path))
    (tmp_path / "study.py").write_text("raise SystemExit('no\\nway')\n")
    with pytest.raises(InputError, match="cannot be loaded: SystemExit: no way"):
        find_study(str(tmp_path))


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"name": "two words"}, "must be one word of letters, digits, - and _, got 'two words'"),
        ({"claims": SMALL.claims * 2}, "has two claims of one name, got 'norm-positive'"),
        ({"supplements": SMALL.tables}, "has two items of one name, got 'tab-norm'"),
        ({"claims": (replace(SMALL.claims[0], shown_in="tab-x"),)}, "claim norm-positive of small must be shown in"),
    ],
)
def test_a_study_that_contradicts_itself_is_rejected(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        replace(SMALL, **changes)


def _raises(*arguments: object) -> Any:
    raise KeyError("one\nand two")


def test_what_its_own_code_raises_is_one_sentence_with_study_and_part() -> None:
    with pytest.raises(InputError, match=r"^experiment tiny of the study small failed: KeyError: .*$"):
        replace(SMALL, experiments={"tiny": _raises}).runs()
    with pytest.raises(InputError, match="experiment tiny of the study small failed: TypeError"):
        replace(SMALL, experiments={"tiny": lambda: {}}).runs()
    with pytest.raises(InputError, match="must return a dict of RunSpec by name"):
        replace(SMALL, experiments={"tiny": lambda n_seeds, precision: {"a": 1}}).runs()
    with pytest.raises(InputError, match="small is a fork of a run that is not in the study"):
        replace(SMALL, experiments={"forks": SMALL.experiments["forks"]}, claims=(), measured=()).plan(["forks"], "out")
    with pytest.raises(InputError, match="tab-norm of the study small failed: KeyError"):
        SMALL.build(replace(SMALL.tables[0], build=_raises), Evidence({}), Table)
    with pytest.raises(InputError, match="tab-norm of the study small failed: TypeError: it must return a Figure"):
        SMALL.build(SMALL.tables[0], Evidence({"tiny": {}}), Figure)
