"""The example of three foreign models runs, tiny, with and without steering, on a CPU."""

import json
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest
import torch

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("name", ["nanda", "decoder", "parity"])
def test_three_lines_train_each_model(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    import steered_models

    sizes = {"nanda": {"width": 16, "heads": 2, "neurons": 32}, "decoder": {"width": 16, "heads": 2, "layers": 1}}
    host = steered_models.HOSTS[name]
    made, options = host.model, sizes.get(name, {"neurons": 32})
    small = {"nanda": "add_mod7", "decoder": "add_mod7", "parity": "parity_n12_k2"}[name]
    tiny = type(host)(small, 0.5, lambda size: made(size, **options), host.optimizer, host.batch and 16, 100)
    monkeypatch.setitem(steered_models.HOSTS, name, tiny)
    torch.set_num_threads(1)
    nothing_for_muon = pytest.warns(UserWarning, match="Muon moves nothing") if name == "parity" else nullcontext()
    with nothing_for_muon:
        found = steered_models.main(models=(name,), seeds=1, out=tmp_path / "steered.json")
    before, after = found[name]
    assert (before["steered"], after["steered"]) == (False, True)
    assert before["steps"] == after["steps"] == 100
    assert json.loads((tmp_path / "steered.json").read_text())["runs"] == found
    sys.modules.pop("steered_models")
