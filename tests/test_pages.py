from collections.abc import Iterator
from pathlib import Path

import pytest

from grokscope.cli import parse
from grokscope.errors import InputError
from grokscope.jobs import run_all
from grokscope.measures import MEASURES
from grokscope.runs import Store, open_runs
from grokscope.specs import Architecture, Cadence, RunSpec, Training
from pages import blocks, command_lines, run_blocks

ROOT = Path(__file__).parents[1]
HOW_TO = ROOT / "docs" / "how-to"
PAGES = [ROOT / "docs" / "quick-start.md", ROOT / "docs" / "tour.md", *sorted(HOW_TO.glob("*.md"))]


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
    assert "add_mod97_s123" in names["table"].notes[-1]
    assert (alone / "tour.html").stat().st_size > 100_000


@pytest.fixture
def registry() -> Iterator[None]:
    before = dict(MEASURES)
    yield
    MEASURES.clear()
    MEASURES.update(before)


def small(seed: int) -> RunSpec:
    return RunSpec(
        task="add_mod97",
        architecture=Architecture(layers=1, width=16, heads=2, mlp_width=32),
        training=Training(steps=10, batch_size=32),
        checkpoints=Cadence(every=10),
        measurements=Cadence(every=10),
    ).with_seed(seed)


def test_the_quick_start_reads_what_the_demo_leaves(alone: Path) -> None:
    run_all([small(42), small(0)], Store("runs/demo"), compiled=False)
    names = run_blocks(ROOT / "docs" / "quick-start.md")
    assert names["rows"][-1]["validation_accuracy"] == pytest.approx(names["log"]["validation_accuracy"][-1])
    assert names["rows"][-1]["fsd"] == pytest.approx(names["log"]["fsd"][-1])


def test_how_to_train_your_own_task(alone: Path) -> None:
    names = run_blocks(HOW_TO / "train-your-own-task.md")
    assert len(names["grokscope"].open("runs/mine")) == 4
    a, b = names["task"].inputs.T
    assert ((a * a + a * b + b * b) % 7 == names["task"].answers).all()


def test_how_to_bring_your_own_group(alone: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = run_blocks(HOW_TO / "bring-your-own-group.md")
    assert (names["group"].order, len(names["group"].classes)) == (8, 5)
    assert sorted(names["character_table"](names["group"]).dimensions.tolist()) == [1, 1, 1, 1, 2]
    assert "no group" in capsys.readouterr().out


def test_how_to_fork(alone: Path) -> None:
    names = run_blocks(HOW_TO / "fork.md")
    assert len(names["waits"]) == 8
    assert {wait.weight_decay for wait in names["waits"]} == {1.0, 2.0, 3.0}


def test_how_to_write_a_measure(alone: Path, registry: None) -> None:
    run_all([small(0)], Store("runs/first"), compiled=False)
    names = run_blocks(HOW_TO / "write-a-measure.md")
    power = names["question"].spectrum().power[-1]
    naive = [1 - sum(sorted(column)[-2:]) / sum(column) for column in power.T.tolist()]
    assert float(names["values"][-1]) == pytest.approx(sorted(naive)[(len(naive) - 1) // 2])
    assert 0 < float(names["below"]) <= 1


def test_how_to_scale_out(alone: Path) -> None:
    run_blocks(HOW_TO / "scale-out.md")
    assert len(open_runs("runs/wide")) == 3
    assert all((run.folder.path / "measures.jsonl").exists() for run in open_runs("runs/wide"))


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_every_command_on_a_page_can_be_given(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for words in command_lines(text):
        parse(words)
    others = {line.split()[0] for block in blocks(text, "sh") for line in block.splitlines()} - {"grokscope"}
    assert others <= {"make", "source", "python"}


def test_a_command_that_cannot_be_given_is_noticed() -> None:
    with pytest.raises(InputError):
        parse(["train", "add_mod97", "--sedes", "0", "--out", "runs"])
