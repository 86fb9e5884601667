import os
import pickle
import resource
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from torch import nn

from grokscope.attach import convert, load_weights, read_weights
from grokscope.cli import run
from grokscope.errors import InputError
from grokscope.training.checkpoint import export_tensors


def small() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))


def test_weights_come_back_renamed(tmp_path: Path) -> None:
    published, own = small(), small()
    theirs = {f"net.{name}": value for name, value in published.state_dict().items()} | {"step": torch.ones(1)}
    safetensors.torch.save_file(theirs, tmp_path / "a.safetensors")
    with torch.no_grad():
        own[0].weight.zero_()
    load_weights(own, tmp_path / "a.safetensors", lambda name: name.removeprefix("net.") if name != "step" else "")
    assert torch.equal(own[0].weight, published[0].weight)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda given: given | {"0.wieght": torch.zeros(4)}, "has no tensor '0.wieght'; did you mean '0.weight'"),
        (lambda given: given | {"0.bias": torch.zeros(5)}, r"0.bias is \[4\] in the model and \[5\] in"),
        (lambda given: {"0.bias": given["0.bias"]}, "lacks 3 tensors of the model, such as '0.weight'"),
    ],
)
def test_weights_that_do_not_fit_are_rejected_and_change_nothing(tmp_path: Path, change: Any, sentence: str) -> None:
    model = small()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    safetensors.torch.save_file(change(dict(small().state_dict())), tmp_path / "a.safetensors")
    with pytest.raises(InputError, match=sentence):
        load_weights(model, tmp_path / "a.safetensors")
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_a_pt_file_is_converted_by_another_process(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = small()
    shared = {"model": model.state_dict(), "tied": model[0].weight, "epoch": 7, "losses": [torch.ones(2)], "note": "x"}
    torch.save(shared, tmp_path / "a.pt")
    assert run(["import", str(tmp_path / "a.pt")]) == 0
    assert capsys.readouterr().out.strip().endswith("a.safetensors: 7 tensors")
    found = read_weights(tmp_path / "a.safetensors")
    assert sorted(found) == [
        "epoch",
        "losses.0",
        "model.0.bias",
        "model.0.weight",
        "model.2.bias",
        "model.2.weight",
        "tied",
    ]
    assert torch.equal(found["tied"], model[0].weight)
    load_weights(
        small(), tmp_path / "a.safetensors", lambda name: name.removeprefix("model.") if "model" in name else ""
    )


class Hostile:
    """Runs a command when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return os.system, (f"touch {self.mark}",)


@pytest.mark.parametrize("save", [torch.save, lambda thing, path: path.write_bytes(pickle.dumps(thing))])
def test_a_pickle_with_a_program_inside_is_rejected_and_not_run(tmp_path: Path, save: Any) -> None:
    mark = tmp_path / "ran"
    save({"w": torch.ones(1), "x": Hostile(mark)}, tmp_path / "a.pt")
    with pytest.raises(InputError, match="could not be converted: it holds more than tensors") as rejection:
        convert(tmp_path / "a.pt")
    advice = ("weights_only", "safe_globals", "trust", "False")
    assert not [word for word in advice if word in str(rejection.value)], "a library's advice is not repeated"
    assert not mark.exists()
    assert not (tmp_path / "a.safetensors").exists()


def claim(path: Path, stored: int, claimed: int) -> None:
    """A file in the older format, of which the one storage says that it has another size than it has."""
    torch.save({"w": torch.zeros(stored)}, path, _use_new_zipfile_serialization=False)
    mark = b"J" + stored.to_bytes(4, "little")
    assert path.read_bytes().count(mark) >= 1
    path.write_bytes(path.read_bytes().replace(mark, b"\x8a\x08" + claimed.to_bytes(8, "little")))


def inflate(path: Path) -> None:
    """A file whose one storage is deflated to a thousandth of its size."""
    torch.save({"w": torch.zeros(4 * 10**8 // 4)}, path)
    with zipfile.ZipFile(path) as whole, zipfile.ZipFile(path.with_suffix(".zip"), "w", zipfile.ZIP_DEFLATED) as bomb:
        for name in whole.namelist():
            bomb.writestr(name, whole.read(name))
    path.with_suffix(".zip").replace(path)


BOMBS: dict[str, Callable[[Path], object]] = {
    "a storage that claims forty gigabytes": lambda path: claim(path, 10**6 + 3, 10**10),
    "one number, seen ten billion times": lambda path: torch.save({"w": torch.zeros(1).expand(10**10)}, path),
    "one tensor under ten thousand names": lambda path: torch.save(
        dict.fromkeys((f"w{i}" for i in range(10_000)), torch.zeros(10**6)), path
    ),
    "a deflated storage": inflate,
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_small_file_that_asks_for_much_memory_is_rejected(bomb: str, tmp_path: Path) -> None:
    BOMBS[bomb](tmp_path / "a.pt")
    assert (tmp_path / "a.pt").stat().st_size < 5 * 10**6
    with pytest.raises(InputError, match=r"asks for far more memory|they claim at least|or is damaged"):
        convert(tmp_path / "a.pt")
    used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    assert used < 3 * 2**30, f"{used:,} bytes were taken"
    assert not (tmp_path / "a.safetensors").exists()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ({"a.b": torch.ones(1), "a": {"b": torch.zeros(2)}}, "the name 'a.b' would be that of two tensors"),
        ({1: torch.ones(1), "1": torch.zeros(1)}, "the name '1' would be that of two tensors"),
        ({"__metadata__": torch.ones(1)}, "the name '__metadata__' is safetensors' own"),
        ({"w": torch.eye(3).to_sparse()}, r"'w' is not a dense tensor \(torch.sparse_coo\)"),
    ],
)
def test_names_that_clash_and_tensors_that_cannot_be_written_are_rejected(
    tmp_path: Path, content: Any, sentence: str
) -> None:
    torch.save(content, tmp_path / "a.pt")
    with pytest.raises(InputError, match=sentence):
        convert(tmp_path / "a.pt")
    assert [path.name for path in tmp_path.iterdir()] == ["a.pt"]


def test_what_cannot_be_converted_is_one_sentence_and_status_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    torch.save({"note": "no tensors"}, tmp_path / "a.pt")
    assert run(["import", str(tmp_path / "a.pt")]) == 2
    assert capsys.readouterr().err.strip().endswith("a.pt' could not be converted: it holds no tensors")
    (tmp_path / "b.safetensors").write_bytes(b"")
    for arguments, sentence in (
        ((tmp_path / "missing.pt",), "there is no file"),
        ((tmp_path / "b.safetensors",), "import takes .pt"),
        ((tmp_path / "a.pt", tmp_path / "b.safetensors"), "exists already; nothing was overwritten"),
        ((tmp_path / "a.pt", tmp_path / "c.txt"), "weights are written as a .safetensors file"),
    ):
        with pytest.raises(InputError, match=sentence):
            convert(*arguments)


def test_only_safetensors_are_read(tmp_path: Path) -> None:
    (tmp_path / "b.safetensors").write_bytes(b"not one")
    for name, sentence in (
        ("a.pt", r"files only, got .*; make one with: grokscope import .*a.pt"),
        ("none.safetensors", "cannot be read: No such file"),
        ("b.safetensors", "is not a safetensors file"),
    ):
        with pytest.raises(InputError, match=sentence):
            read_weights(tmp_path / name)


def test_a_tensor_that_the_model_has_under_two_names_is_stored_under_one(tmp_path: Path) -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed, self.head = nn.Embedding(7, 4), nn.Linear(4, 7, bias=False)
            self.head.weight = self.embed.weight

    published, own = Tied(), Tied()
    path = tmp_path / "tied.safetensors"
    export_tensors(path, {"embed.weight": published.embed.weight.detach()})
    load_weights(own, path)
    assert torch.equal(own.head.weight, published.embed.weight)
    own.head.weight = nn.Parameter(torch.zeros(7, 4))
    with pytest.raises(InputError, match=r"lacks 1 tensor of the model, such as 'head.weight'"):
        load_weights(own, path)
