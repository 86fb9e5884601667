import ast
import importlib.util
import json
import os
import re
import runpy
import shlex
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from paper_runs import evidence

import grokscope.measures
from grokscope.cli import parse, run
from grokscope.errors import InputError
from grokscope.jobs import run_all
from grokscope.measures import MEASURES
from grokscope.measures.catalogue import gather as gather_measures
from grokscope.runs import Store, open_runs
from grokscope.specs import Architecture, Cadence, RunSpec, Training
from grokscope.studies import Evidence, Study, Verdict, find_study, gather, judge, rules_digest
from grokscope.studies.synchronization import SECTIONS, STUDY, over_time, phases
from grokscope.tasks import named_task
from grokscope.view.table import Table
from pages import blocks, command_lines, run_blocks, shell_lines

ROOT = Path(__file__).parents[1]
HOW_TO = ROOT / "docs" / "how-to"
PAGES = sorted((ROOT / "docs").rglob("*.md"))


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_tour_leads_from_the_spec_to_the_row(alone: Path) -> None:
    names = run_blocks(ROOT / "docs" / "tour.md")
    assert names["means"].means.shape == (2, 97, 32)
    assert names["events"].grokked is None
    assert names["row"].ours == "never"
    assert isinstance(names["row"].paper, int)
    assert names["row"].quantity
    assert "add_mod97" in names["estimand"].key
    sample = names["evidence"].sample(names["estimand"])
    assert sample.n + sample.unmeasured == 1  # the small run is there, and too short for what is read
    assert names["record"].made_for[0].experiment == "base"
    assert "add_mod97_s123" in names["table"].notes[-1]
    assert (alone / "tour.html").stat().st_size > 100_000


def test_the_concepts_are_computed_as_they_are_explained() -> None:
    names = run_blocks(ROOT / "docs" / "concepts.md")
    assert names["fourier_rank"](names["density"]).rank.tolist() == [1.0, 1.0, 1.0, 2.0]
    assert float(names["fsd"](names["density"][:, :3]).participation[2]) == pytest.approx(2 / 3)


RUN_BY = {  # pages with Python, and the test that runs every block of it, in this file if no other is named
    "tour": "test_the_tour_leads_from_the_spec_to_the_row",
    "quick-start": "test_the_quick_start_reads_what_the_demo_leaves",
    "concepts": "test_the_concepts_are_computed_as_they_are_explained",
    "own-model": "tests/test_own_model_page.py::test_every_block_of_the_page_runs_in_order_and_prints_what_it_shows",
    "README": "tests/test_readme.py::test_the_python_block_prints_what_is_below_it",
    "oracles": "tests/test_oracles_page.py::test_every_block_of_the_page_runs_in_order_and_gives_what_it_says",
    **{page.stem: f"test_how_to_{page.stem.replace('-', '_')}" for page in HOW_TO.glob("*.md")},
    "your-own-study": "test_how_to_write_your_own_study",
}


def test_how_to_forecast_runs(alone: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_blocks(HOW_TO / "forecast-runs.md")["ahead"].tier == 5
    assert "groks within 10,000 more steps" in capsys.readouterr().out


def test_how_to_benchmark_a_forecaster(alone: Path) -> None:
    scores = run_blocks(HOW_TO / "benchmark-a-forecaster.md")["scores"]
    assert scores.values["concordance at 25%"].value == 1.0


def test_how_to_steer(alone: Path, capsys: pytest.CaptureFixture[str]) -> None:
    steering = run_blocks(HOW_TO / "steer.md")["steering"]
    assert [row["step"] for row in steering.log] == [50, 100, 150, 200]
    assert all("validation_accuracy" in row for row in steering.log)
    assert "<Steering of Muon and AdamW: λ = " in capsys.readouterr().out


def test_how_to_judge_a_log(alone: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_blocks(HOW_TO / "judge-a-log.md")["found"].memorized == 400
    assert "accuracies are read as percent" in capsys.readouterr().out


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md"], ids=lambda path: path.stem)
def test_every_python_block_is_run_by_a_test(page: Path) -> None:
    if blocks(page.read_text(encoding="utf-8"), "python"):
        file, _, name = RUN_BY[page.stem].rpartition("::")
        assert f"def {name}(" in (ROOT / (file or "tests/test_pages.py")).read_text(encoding="utf-8")


def small(seed: int, task: str = "add_mod97") -> RunSpec:
    return RunSpec(
        task=task,
        architecture=Architecture(layers=1, width=16, heads=2, mlp_width=32),
        training=Training(steps=10, batch_size=32),
        checkpoints=Cadence(every=10),
        measurements=Cadence(every=10),
    ).with_seed(seed)


def test_the_quick_start_reads_what_the_demo_leaves(alone: Path) -> None:
    run_all([small(42, "add_mod31"), small(0, "add_mod31")], Store("runs/demo"), compiled=False)
    names = run_blocks(ROOT / "docs" / "quick-start.md")
    assert names["rows"][-1]["validation_accuracy"] == pytest.approx(names["log"]["validation_accuracy"][-1])
    assert names["rows"][-1]["fsd"] == pytest.approx(names["log"]["fsd"][-1])


def test_how_to_train_your_own_task(alone: Path) -> None:
    names = run_blocks(HOW_TO / "train-your-own-task.md")
    assert len(names["grokscope"].open("runs/mine")) == 4
    a, b = names["task"].inputs.T
    assert ((a * a + a * b + b * b) % 7 == names["task"].answers).all()
    mine = named_task("mine.npz")
    assert (mine.rows, mine.classes, mine.held_out) == (529, 23, ("large",))
    own = names["own"]
    assert (own.rows, own.features, own.classes, own.is_real) == (120, 8, 2, True)
    assert names["run"].record.evaluations["validation_relative_error"][-1] < 1
    assert (alone / "real.html").stat().st_size > 50_000


def test_rows_of_your_own_are_trained_and_reported_by_the_commands_of_the_page(alone: Path) -> None:
    text = (HOW_TO / "train-your-own-task.md").read_text(encoding="utf-8")
    [making] = [block for block in blocks(text, "python") if 'np.savez("mine.npz"' in block]
    exec(making, {})
    lines = [words for words in command_lines(text) if {"mine.npz", "runs/rows"} & {*words}]
    assert [words[0] for words in lines] == ["tasks", "train", "list", "show", "report"]
    for words in lines:
        assert run(words) == 0
    [trained] = open_runs("runs/rows")
    timeline = trained.record.timeline
    assert timeline.memorized is not None
    assert timeline.grokked is not None
    assert timeline.memorized < 50 < timeline.grokked < 200, "as the page says"
    assert trained.record.evaluations["large_accuracy"][-1] > 0.9
    assert (alone / "rows.html").stat().st_size > 50_000


def test_how_to_bring_your_own_group(alone: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = run_blocks(HOW_TO / "bring-your-own-group.md")
    assert (names["group"].order, len(names["group"].classes)) == (8, 5)
    assert sorted(names["character_table"](names["group"]).dimensions.tolist()) == [1, 1, 1, 1, 2]
    assert "no group" in capsys.readouterr().out


def test_how_to_fork(alone: Path) -> None:
    names = run_blocks(HOW_TO / "fork.md")
    assert len(names["times"]) == 12
    assert {one.weight_decay for one in names["times"]} == {1.0, 2.0, 3.0}


@pytest.fixture
def added_measure(alone: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The page's file beside those of the package, found as any other."""
    block = blocks((HOW_TO / "add-a-measure.md").read_text(encoding="utf-8"), "python")[0]
    (alone / "beyond_two.py").write_text(block, encoding="utf-8")
    monkeypatch.setattr(grokscope.measures, "__path__", [*grokscope.measures.__path__, str(alone)])
    before = dict(MEASURES)
    MEASURES.update(gather_measures())
    yield
    MEASURES.clear()
    MEASURES.update(before)
    del sys.modules["grokscope.measures.beyond_two"]


def test_how_to_add_a_measure(added_measure: None) -> None:
    run_all([small(0)], Store("runs/first"), compiled=False)
    names = run_blocks(HOW_TO / "add-a-measure.md")
    power = names["question"].spectrum().power[-1]
    naive = [1 - sum(sorted(column)[-2:]) / sum(column) for column in power.T.tolist()]
    expected = sorted(naive)[(len(naive) - 1) // 2]
    assert float(names["values"][-1]) == pytest.approx(expected)
    assert names["row"]["beyond_two"] == pytest.approx(expected)
    assert 0 < float(names["below"]) <= 1


def extended(section: ModuleType, page: str, folder: Path) -> Study:
    """The study after the page's code was added to the end of this section, and to nothing else."""
    text = (HOW_TO / page).read_text(encoding="utf-8")
    assert f"`src/grokscope/studies/synchronization/{Path(str(section.__file__)).name}`" in text
    [block] = blocks(text, "python")
    path = folder / Path(str(section.__file__)).name
    path.write_text(f"{Path(str(section.__file__)).read_text(encoding='utf-8')}\n\n{block}", encoding="utf-8")
    spec = importlib.util.spec_from_file_location(f"{section.__name__}_copy", path)
    assert spec is not None
    assert spec.loader is not None
    copy = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(copy)
    return replace(STUDY, **gather(copy if one is section else one for one in SECTIONS))


def test_how_to_add_a_table(tmp_path: Path) -> None:
    study = extended(over_time, "add-a-table.md", tmp_path)
    assert study.items.keys() - STUDY.items.keys() == {"tab-memorised"}
    assert study.experiments_for(["tab-memorised"]) == ("base",)
    table = study.items["tab-memorised"].build(evidence(True))
    assert isinstance(table, Table)
    cell = table.cell("add_mod97_s42", "Step")
    assert (cell.ours, "memorised at" in cell.quantity) == (300, True)
    empty = study.items["tab-memorised"].build(Evidence({name: {} for name in study.experiments}))
    assert isinstance(empty, Table)
    assert empty.cell("add_mod97_s42", "Step").ours is None


def test_how_to_add_a_claim(tmp_path: Path) -> None:
    study = extended(phases, "add-a-claim.md", tmp_path)
    [claim] = [one for one in study.claims if one.name == "memorised-early"]
    assert len(study.claims) == len(STUDY.claims) + 1
    assert rules_digest(study.claims) != rules_digest(STUDY.claims)
    followed, contradicted = (judge(claim, evidence(follows)) for follows in (True, False))
    assert (followed.own, followed.verdict) == ("300", Verdict.REPRODUCED)
    assert (contradicted.own, contradicted.verdict) == ("2,000", Verdict.UNLIKELY)
    assert judge(claim, Evidence({name: {} for name in study.experiments})).verdict is Verdict.NOT_TESTABLE


def test_how_to_write_your_own_study() -> None:
    folder = ROOT / "examples" / "own_study"
    source = [line.strip() for line in (folder / "study.py").read_text(encoding="utf-8").splitlines()]
    text = (HOW_TO / "your-own-study.md").read_text(encoding="utf-8")
    quoted = [line.strip() for block in blocks(text, "python") for line in block.splitlines()]
    assert len(quoted) == 3
    assert [line for line in quoted if not any(line in one for one in source)] == []
    assert set(re.findall(r"--only (\S+)`", text)) == {"tab-decay"} <= set(find_study(str(folder)).items)


def test_how_to_judge_a_paper(alone: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    text = (HOW_TO / "judge-a-paper.md").read_text(encoding="utf-8")
    *study, check = blocks(text, "python")
    (alone / "ridge").mkdir()
    (alone / "ridge" / "study.py").write_text("\n\n".join(study), encoding="utf-8")
    (alone / "ridge" / "check.py").write_text(check, encoding="utf-8")
    names = {"ridge-groks", "half-the-decay-doubles-the-wait"}
    for line in shell_lines(text):
        words = shlex.split(line, comments=True)
        if words[:2] == ["python", "ridge/check.py"]:
            capsys.readouterr()
            runpy.run_path(words[1])
            right, wrong, short = map(ast.literal_eval, capsys.readouterr().out.splitlines())
            assert right == dict.fromkeys(names, "reproduced")
            assert right.keys() == wrong.keys() == short.keys()
            assert "reproduced" not in {*wrong.values(), *short.values()}
        else:
            assert words[0] == "grokscope"
            assert run(words[1:]) == 0, line
    judged = json.loads((alone / "runs" / "ridge" / "claims.json").read_text(encoding="utf-8"))
    assert {row["name"] for row in judged} == names
    assert {row["verdict"] for row in judged} == {"reproduced"}
    assert json.loads((alone / "again" / "claims.json").read_text(encoding="utf-8")) == judged
    page = (alone / "again" / "RESULTS.md").read_text(encoding="utf-8")
    assert "ten times as late" in page
    assert "- Ridge regression generalises" in page
    assert "## Limits\n\n- One size" in page


def test_how_to_scale_out(alone: Path) -> None:
    run_blocks(HOW_TO / "scale-out.md")
    assert len(open_runs("runs/wide")) == 3
    assert all((run.folder.path / "measures.jsonl").exists() for run in open_runs("runs/wide"))


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_every_command_on_a_page_can_be_given(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for words in command_lines(text):
        parse(words)
    others = {line.split()[0] for line in shell_lines(text)} - {"grokscope"}
    assert others <= {"make", "source", "python", "git", "cp", "export"}


def test_a_command_that_cannot_be_given_is_noticed() -> None:
    with pytest.raises(InputError):
        parse(["train", "add_mod97", "--sedes", "0", "--out", "runs"])
