"""What cannot be trained is rejected before anything is written."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from grokscope.errors import InputError
from grokscope.jobs import (
    run_all,
)
from grokscope.runs import Store
from grokscope.specs import RunSpec
from short_runs import tiny


@pytest.mark.parametrize(
    ("specs", "options", "sentence"),
    [
        ([tiny(), replace(tiny(), task="ad_mod7")], {}, "did you mean 'add_mod7'"),
        ([tiny(), replace(tiny(), train_fraction=0.001)], {}, "leaves no training pair"),
        ([tiny()], {"device": "banana"}, "device 'banana' was asked for, and there is none"),
        ([tiny()], {"device": "cudax"}, "device 'cudax' was asked for, and there is none"),
    ],
    ids=["task", "fraction", "device", "nearly a device"],
)
def test_what_cannot_be_trained_is_refused_before_anything_is_written(
    specs: list[RunSpec], options: dict[str, str], sentence: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=sentence):
        run_all(specs, Store(tmp_path / "runs"), compiled=False, **options)
    assert not (tmp_path / "runs").exists()


def test_where_there_is_no_cuda_it_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(InputError, match="device 'cuda' was asked for, and there is none; use cpu"):
        run_all([tiny()], Store(tmp_path / "runs"), device="cuda")
    assert not (tmp_path / "runs").exists()
