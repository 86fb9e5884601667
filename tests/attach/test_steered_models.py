"""The example of three foreign models runs, tiny, on a CPU; its table follows from its record."""

import json
import re
from contextlib import nullcontext
from dataclasses import replace
from math import exp, log, sqrt
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import scipy.stats
import torch

from scripts import DOCS, module_at

ROOT = Path(__file__).parents[2]


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    return module_at(ROOT / "examples" / "steered_models.py")


def tiny(example: ModuleType, name: str) -> Any:
    """A host of the example, small."""
    host = example.HOSTS[name]
    models = {
        "nanda": lambda vocabulary: example.OneLayer(vocabulary, width=16, heads=2, neurons=32),
        "gpt2": lambda vocabulary: example.gpt2(vocabulary, width=16, heads=2),
        "parity": lambda bits: example.parity_mlp(bits, neurons=32),
    }
    task = "parity_n12_k2" if name == "parity" else "add_mod7"
    return replace(host, task=task, fraction=0.5, model=models[name], batch=host.batch and 16, budget=100)


@pytest.mark.parametrize("name", ["nanda", pytest.param("gpt2", marks=pytest.mark.interop), "parity"])
@pytest.mark.filterwarnings("default")
def test_three_lines_train_each_model(
    name: str, example: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(example.HOSTS, name, tiny(example, name))
    nothing_for_muon = pytest.warns(UserWarning, match="Muon moves nothing") if name == "parity" else nullcontext()
    with nothing_for_muon:
        found = example.main(models=(name,), seeds=2, out=tmp_path / "new" / "cpu.json")
    runs = found["models"][name]["runs"]
    assert [(run["seed"], run["steered"]) for run in runs] == [(0, False), (0, True), (1, False), (1, True)]
    assert {run["steps"] for run in runs} == {100}
    assert all(run["stable"] is None for run in runs)  # it takes 2,000 steps to know
    accuracies = [run["validation_accuracy"] for run in runs]
    assert accuracies[0][0] == accuracies[1][0]  # the same weights and pairs
    assert (accuracies[0] == accuracies[1]) is (name == "parity")  # without Muon a gentle start is AdamW at λ = 1
    assert {len(own) for own in accuracies} == {3}
    assert json.loads((tmp_path / "new" / "cpu.json").read_text()) == json.loads(json.dumps(found))


def test_the_untouched_loop_is_adamw_alone(example: ModuleType) -> None:
    host = tiny(example, "nanda")
    found = example.train(host, 3, is_steered=False)
    torch.manual_seed(3)
    data = example.Data(host, 3, "cpu")
    model = host.model(data.size)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.98), weight_decay=1.0)
    for _ in range(100):
        optimizer.zero_grad()
        logits = model(data.inputs[data.train])[:, -1]
        torch.nn.functional.cross_entropy(logits.double(), data.answers[data.train]).backward()
        optimizer.step()
    assert found["validation_accuracy"][-1] == round(data.accuracy(model), 4)


def runs_of(before: list[int | None], after: list[int | None]) -> list[dict[str, Any]]:
    return [
        {"seed": seed, "steered": steered, "stable": step, "decisions": [], "seconds_per_step": 1.0}
        for steered, steps in ((False, before), (True, after))
        for seed, step in enumerate(steps)
    ]


def test_loops_are_compared_by_pairs_and_what_is_not_reached_counts_as_the_budget(example: ModuleType) -> None:
    found = example.compare(runs_of([4000, 2000, None], [1000, 1000, 3000]), 8000)
    logs = [log(4), log(2), log(8000 / 3000)]
    mean = sum(logs) / 3
    half = scipy.stats.t.ppf(0.975, 2) * sqrt(sum((one - mean) ** 2 for one in logs) / 2 / 3)
    assert found["ratio"] == pytest.approx(
        {"value": exp(mean), "low": exp(mean - half), "high": exp(mean + half)}, abs=1e-4
    )
    assert (found["before"]["reached"], found["before"]["median"], found["before"]["worst"]) == (2, 4000, None)
    assert (found["after"]["reached"], found["after"]["median"], found["after"]["worst"]) == (3, 1000, 3000)
    nothing = example.compare(runs_of([None, None], [None, 500]), 8000)
    assert nothing["before"]["median"] is None
    assert nothing["ratio"]["value"] == pytest.approx(4.0)


RECORDS = sorted((ROOT / "results" / "steered_models").glob("*.json"))


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_the_page_says_what_the_record_holds(path: Path, example: ModuleType) -> None:
    record = json.loads(path.read_text())
    assert not record["provenance"]["commit"].endswith("-dirty")
    for name, model in record["models"].items():
        assert model["comparison"] == example.compare(model["runs"], model["comparison"]["budget"])
        host, runs = example.HOSTS[name], model["runs"]
        assert (model["title"], model["comparison"]["budget"]) == (host.title, host.budget)
        assert len(runs) == 2 * example.SEEDS
        for run in runs:
            steps = [*range(0, run["steps"] + 1, record["every"])]
            assert run["stable"] == example.stability(steps, run["validation_accuracy"]).step
    made = module_at(DOCS / "make_steered_models.py")
    page = made.PAGE.read_text(encoding="utf-8")
    assert made.with_block(page) == page
    assert re.search(r"\| \d/8 ", page)
