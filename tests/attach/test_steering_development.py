"""The comparison on the tasks for development runs, and its page says what its record holds."""

import json
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from grokscope.specs import Architecture
from grokscope.timeline import stability
from scripts import DOCS, module_at

ROOT = Path(__file__).parents[2]


@pytest.fixture
def example() -> ModuleType:
    return module_at(ROOT / "examples" / "steering_development.py")


def test_both_recipes_train_both_tasks(example: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = Architecture(layers=1, width=8, heads=1, mlp_width=16)
    tiny = {
        title: replace(
            plain,
            task="add_mod5",
            architecture=small
            if plain.architecture.kind == "transformer"
            else replace(plain.architecture, mlp_width=8),
            training=replace(plain.training, steps=60, batch_size=8),
        )
        for title, plain in example.TASKS.items()
    }
    monkeypatch.setattr(example, "TASKS", tiny)
    found = example.main(seeds=2, out=tmp_path / "new" / "cpu.json")
    assert json.loads((tmp_path / "new" / "cpu.json").read_text()) == json.loads(json.dumps(found))
    for task in found["tasks"].values():
        assert [[run["seed"] for run in own] for own in task["runs"].values()] == [[0, 1], [0, 1]]
        at_once, gently = (own[0] for own in task["runs"].values())
        assert at_once["validation_accuracy"][0] == gently["validation_accuracy"][0]
        assert [change["reason"] for change in gently["changes"]][:1] == ["gentle"]
        assert {run["stable"] for own in task["runs"].values() for run in own} == {None}


def test_the_rule_needs_as_many_runs_and_a_median_that_is_not_clearly_later(example: ModuleType) -> None:
    def preferred(before: tuple[int, float | None], after: tuple[int, float | None]) -> bool:
        return example.is_preferred(*({"stable": stable, "median": median} for stable, median in (before, after)))

    assert preferred((8, 400.0), (8, 500.0))
    assert not preferred((8, 400.0), (8, 550.0))
    assert not preferred((8, 400.0), (7, 100.0))
    assert not preferred((5, 400.0), (5, None))
    assert preferred((0, None), (0, None))


def test_the_page_says_what_the_record_holds(example: ModuleType) -> None:
    made = module_at(DOCS / "make_steering_development.py")
    record = json.loads(made.RECORD.read_text(encoding="utf-8"))
    assert not record["provenance"]["commit"].endswith("-dirty")
    assert {*record["tasks"]} == {*example.TASKS}
    for title, task in record["tasks"].items():
        assert task["budget"] == example.TASKS[title].training.steps
        for name, runs in task["runs"].items():
            assert len(runs) == example.SEEDS
            assert task["summary"][name] == example.summarize(runs, task["budget"])
            for run in runs:
                steps = [record["every"] * i for i in range(len(run["validation_accuracy"]))]
                assert run["stable"] == stability(steps, run["validation_accuracy"]).step
        assert task["preferred"] == example.is_preferred(*task["summary"].values())
    page = made.PAGE.read_text(encoding="utf-8")
    assert made.with_block(page) == page
    assert "| preferred |" in page
