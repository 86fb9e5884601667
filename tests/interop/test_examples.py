"""Every example runs, with the real libraries."""

import importlib.util
import json
import math
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

pytestmark = [pytest.mark.interop, pytest.mark.filterwarnings("default")]
EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    torch.set_num_threads(1)
    with warnings.catch_warnings():
        yield


def example(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def seen(log: list[dict[str, Any]]) -> list[int]:
    assert all(math.isfinite(row["fsd"]) and not row["undefined"] for row in log)
    return [row["step"] for row in log]


def test_a_plain_loop(tmp_path: Path) -> None:
    log = example("plain_loop").main(steps=400, out=tmp_path).log
    assert seen(log) == [0, 100, 200, 300, 400]
    assert [row["weight_decay"] for row in log][-1] == 3.0
    from grokscope import open as open_runs

    assert len(open_runs(tmp_path)) == 1


def test_a_lightning_module() -> None:
    assert seen(example("lightning_module").main(steps=200).log) == [0, 100, 200]


def test_a_hugging_face_gpt2() -> None:
    log = example("hugging_face_gpt2").main(steps=150).log
    assert seen(log) == [0, 50, 100, 150]
    assert [row["weight_decay"] for row in log] == [1.0, 1.0, 1.0, 3.0]


def test_a_transformer_lens_model() -> None:
    log = example("transformer_lens_model").main(steps=50).log
    assert seen(log) == [0, 50]
    assert "fsd@blocks.0.hook_attn_out" in log[0]


def test_an_nnsight_site() -> None:
    log = example("nnsight_site").main(steps=50).log
    assert seen(log) == [0, 50]
    assert all(row["fsd"] == row["fsd@traced"] for row in log)


def test_a_torchmetrics_metric() -> None:
    by_metric, by_monitor = example("torchmetrics_fsd").main()
    assert by_metric == pytest.approx(by_monitor)


def test_nandas_model(tmp_path: Path) -> None:
    example("nanda").main(steps=4, every=2, p=13, out=tmp_path / "nanda.json")
    found = json.loads((tmp_path / "nanda.json").read_text())
    assert found["log"]["step"] == [0, 2, 4]
    for column in ("fsd", "rank", "trig", "excluded", "trig_with_final_keys", "excluded_with_final_keys"):
        assert all(math.isfinite(value) for value in found["log"][column])
    assert found["log"]["trig"][-1] == pytest.approx(found["log"]["trig_with_final_keys"][-1])
    assert found["provenance"]["torch"] == torch.__version__
    assert found["comparison"][0]["found"] == len(found["key_frequencies"])
    assert found["comparison"][-1]["found"] == found["log"]["trig_with_final_keys"][-1]


def test_nandas_model_is_trained_until_an_evaluation_says_enough() -> None:
    nanda = example("nanda")
    model, tokens, answers = nanda.OneLayer(14), torch.tensor([[1, 2, 13], [3, 4, 13]]), torch.tensor([3, 7])
    seen_at: list[int] = []
    before = model.embed.detach().clone()
    assert nanda.train(model, tokens, answers, 40, False, lambda step: seen_at.append(step) or step == 12) == 12
    assert seen_at == list(range(13))
    assert not torch.equal(before, model.embed)


def test_a_neuron_of_one_frequency_is_explained_by_it_and_a_mixed_one_is_not() -> None:
    nanda = example("nanda")
    task = nanda.named_task("add_mod13")
    a, b = torch.meshgrid(torch.arange(13.0), torch.arange(13.0), indexing="ij")
    w = 2 * math.pi / 13
    pure = torch.cos(3 * w * a) * torch.sin(3 * w * b) + torch.cos(3 * w * b) + 5
    mixed = torch.cos(3 * w * a) + torch.cos(4 * w * b)
    found = nanda.explained_by_one(torch.stack([pure, mixed], dim=-1), task.basis())
    assert found.tolist() == pytest.approx([1.0, 0.5])
