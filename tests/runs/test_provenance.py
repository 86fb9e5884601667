"""Where a result comes from."""

import pytest
import torch

from grokscope.runs.provenance import provenance


def test_it_names_versions_commit_and_device() -> None:
    found = provenance("cpu")
    assert found.keys() == {"grokscope", "commit", "device", "python", "torch", "numpy"}
    assert found["torch"] == torch.__version__


def test_a_copy_without_history_has_its_commit_from_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROKSCOPE_COMMIT", "0123456789ab")
    assert provenance.__wrapped__("cpu")["commit"] == "0123456789ab"
