"""The folder of one run: its log, its checkpoints, and what of them is believed."""

import errno
import json
import os
import pickle
import resource
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from small_folders import everything_under, folder_with, state

from grokscope.errors import InputError
from grokscope.files import DamagedError
from grokscope.runs import (
    RunFolder,
    RunOutcome,
)
from grokscope.training import checkpoint
from grokscope.training.checkpoint import load_tensors, save_tensors

ROWS = [{"step": step, "norm": 0.1 + step / 3, "mode": 5.0} for step in (0, 10, 20)]


def names_of(folder: RunFolder) -> list[str]:
    return sorted(p.name for p in folder.path.glob("*.safetensors"))


def test_the_log_gives_back_what_was_appended(tmp_path: Path) -> None:
    folder = folder_with(tmp_path)
    assert folder.log() == []
    for row in (*ROWS, {"step": 30, "norm": float("nan"), "mode": float("inf")}):
        folder.append(row)
    assert folder.log() == [*ROWS, {"step": 30, "norm": None, "mode": None}]
    for line in (folder.path / "log.jsonl").read_bytes().splitlines():
        text, _, checksum = line.partition(b"\t")
        assert int(checksum, 16) == zlib.crc32(folder.spec.content_hash.encode() + text)
        json.loads(text)


def test_a_torn_last_record_is_repaired_wherever_it_was_torn(tmp_path: Path) -> None:
    folder = folder_with(tmp_path)
    log = folder.path / "log.jsonl"
    lengths = [0]
    for row in ROWS:
        folder.append(row)
        lengths.append(log.stat().st_size)
    whole = log.read_bytes()
    for end in range(lengths[-2], lengths[-1] - 1):  # all but the newline may be there: then the record is whole
        log.write_bytes(whole[:end])
        assert folder.log() == ROWS[:2]
        folder.rewind(10)
        folder.append(ROWS[2])
        assert log.read_bytes() == whole


def test_an_altered_record_is_never_believed(tmp_path: Path) -> None:
    folder = folder_with(tmp_path)
    for row in ROWS:
        folder.append(row)
    log = folder.path / "log.jsonl"
    whole = log.read_bytes()
    for place in range(len(whole)):
        log.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << place % 8]) + whole[place + 1 :])
        read = folder.log()
        assert len(read) < 3 or place == len(whole) - 1
        assert all(row in ROWS for row in read)


def test_of_repeated_steps_the_last_counts(tmp_path: Path) -> None:
    folder = folder_with(tmp_path)
    for row in (*ROWS, {"step": 10, "norm": 7.0}, {"step": 5, "norm": 6.0}):
        folder.append(row)
    assert folder.log() == [ROWS[0], {"step": 5, "norm": 6.0}, {"step": 10, "norm": 7.0}, ROWS[2]]


def test_rewinding_drops_what_came_later(tmp_path: Path) -> None:
    folder = folder_with(tmp_path)
    for row in ROWS:
        folder.append(row)
    folder.rewind(15)
    assert folder.log() == ROWS[:2]
    folder.rewind(-1)
    assert folder.log() == []


def test_a_log_that_cannot_grow_names_its_path_and_the_free_bytes(tmp_path: Path) -> None:
    folder = folder_with(tmp_path)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1, hard))
    try:
        with pytest.raises(InputError, match=r"log\.jsonl' could not be written: File too large; [0-9,]+ bytes"):
            folder.append(ROWS[0])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_nothing_is_appended_through_a_link(tmp_path: Path) -> None:
    folder = folder_with(tmp_path / "runs")
    (tmp_path / "precious").write_text("mine")
    (folder.path / "log.jsonl").symlink_to(tmp_path / "precious")
    with pytest.raises(InputError, match=r"log\.jsonl' is a link, not a file"):
        folder.append(ROWS[0])
    assert (tmp_path / "precious").read_text() == "mine"


def test_saved_then_loaded_is_the_same(tmp_path: Path) -> None:
    tensors = {
        "a": torch.tensor([[1e-45, -0.0], [float("inf"), float("nan")]]),
        "b": torch.arange(6.0, dtype=torch.float64).reshape(2, 3).T,
        "c": torch.tensor([True]),
        "d": torch.tensor([2**62 + 1]),
    }
    save_tensors(tmp_path / "x.safetensors", tensors)
    loaded = load_tensors(tmp_path / "x.safetensors")
    assert loaded.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert loaded[name].dtype == tensor.dtype
        assert loaded[name].contiguous().view(torch.uint8).equal(tensor.contiguous().view(torch.uint8))


def no_space(*arguments: object, **options: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize(("owner", "name"), [(os, "fsync"), (Path, "replace"), (Path, "open")])
@pytest.mark.parametrize("after", [0, 1, 2, 3])
def test_a_failed_write_leaves_the_former_content(
    owner: object, name: str, after: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each call of a system function that saving makes fails in turn; whatever happens, a whole state remains."""
    folder = folder_with(tmp_path, 10)
    before = everything_under(folder.path)
    works, calls = getattr(owner, name), []

    def fails_later(*arguments: object, **options: object) -> object:
        calls.append(name)
        return works(*arguments, **options) if len(calls) <= after else no_space()

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, fails_later)
        with pytest.raises(
            InputError,
            match=rf"{folder.name}/.* could not be written: No space left on device; [0-9,]+ bytes are free there",
        ):
            folder.save(20, state(20), "weights", is_fork_point=False)
    left = everything_under(folder.path)
    assert not [path for path in left if "partial" in path]
    assert all(left[path] == content for path, content in before.items() if path.endswith(".safetensors"))
    found = folder.latest_state()
    assert found is not None
    step, tensors = found
    assert tensors["embed.W_E"].equal(state(step)["embed.W_E"])
    folder.save(20, state(20), "weights", is_fork_point=False)  # space returned
    assert folder.latest_state()[0] == 20


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0b100
    path.write_bytes(content)


class Bomb:
    """Leaves a trace if it is ever unpickled."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (self.trace,)


def other_state(path: Path) -> Path:
    return next(p for p in sorted(path.parent.glob("state-*.safetensors")) if p != path)


def swap(path: Path) -> None:
    other = other_state(path)
    one, two = path.read_bytes(), other.read_bytes()
    path.write_bytes(two)
    other.write_bytes(one)


DAMAGE: dict[str, Callable[[Path], object]] = {
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "cut in its header": lambda path: path.write_bytes(path.read_bytes()[:20]),
    "empty": lambda path: path.write_bytes(b""),
    "flipped bit": flip,
    "another step's": lambda path: path.write_bytes(other_state(path).read_bytes()),
    "a pickle": lambda path: path.write_bytes(pickle.dumps(Bomb(path.parent / "trace"))),
    "a torch.save": lambda path: torch.save({"embed.W_E": torch.zeros(5, 3)}, path),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
    "a loop": lambda path: (path.unlink(), path.symlink_to(path)),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_checkpoint_is_named_and_the_previous_generation_serves(kind: str, tmp_path: Path) -> None:
    folder = folder_with(tmp_path, 10, 20, 30)
    newest = folder.path / "state-00000030.safetensors"
    DAMAGE[kind](newest)
    step, tensors = folder.latest_state()
    assert step == 20
    assert tensors["second.embed.W_E"].equal(state(20)["second.embed.W_E"])
    with pytest.raises(DamagedError, match=r"state-00000030\.safetensors"):
        load_tensors(newest)
    weights = folder.path / "weights-00000030.safetensors"
    assert folder.weights_at(30)["embed.W_E"].equal(state(30)["embed.W_E"])
    DAMAGE[kind](weights)
    with pytest.raises(DamagedError, match=r"weights-00000030\.safetensors"):
        folder.weights_at(30)
    assert not (folder.path / "trace").exists(), "nothing is ever unpickled"


def test_swapped_checkpoints_serve_neither(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, 10)
    folder.save(25, state(25), "weights", is_fork_point=True)
    folder.save(30, state(30), "weights", is_fork_point=False)
    swap(folder.path / "state-00000030.safetensors")
    step, _ = folder.latest_state()
    assert step in (10, 25)
    assert step != 30


def test_a_missing_checkpoint_falls_back_and_its_step_is_reported(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, 10, 20, 30)
    for kind in ("weights", "state"):
        (folder.path / f"{kind}-00000030.safetensors").unlink()
    assert folder.latest_state()[0] == 20
    with pytest.raises(InputError, match=r"has no weights at step 30; stored steps: 10, 20"):
        folder.weights_at(30)


def test_a_pickle_is_rejected_even_if_the_manifest_vouches_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bomb = pickle.dumps(Bomb(tmp_path / "trace"))
    monkeypatch.setattr(checkpoint.safetensors.torch, "save", lambda tensors: bomb)
    save_tensors(tmp_path / "state-00000010.safetensors", {})
    with pytest.raises(DamagedError, match="is not a safetensors file"):
        load_tensors(tmp_path / "state-00000010.safetensors")
    assert not (tmp_path / "trace").exists()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"3",
        b"\xff",
        b"{}",
        b'{"state-00000020.safetensors": {}}',
        b'{"state-00000020.safetensors": 3}',
        b'{"state-00000020.safetensors": {"sha256": 3, "bytes": "x"}}',
        b'{"state-00000020.safetensors": {"sha256": "00", "bytes": null}}',
    ],
)
def test_a_damaged_manifest_vouches_for_nothing_and_is_written_anew(content: bytes, tmp_path: Path) -> None:
    folder = folder_with(tmp_path, 10, 20)
    (folder.path / "manifest.json").write_bytes(content)
    assert folder.latest_state() is None
    with pytest.raises(DamagedError, match=r"weights-00000020|manifest"):
        folder.weights_at(20)
    folder.save(10, state(10), "weights", is_fork_point=False)
    assert folder.latest_state()[0] == 10


def test_two_generations_stay_and_all_states_where_a_fork_may_begin(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, 0, 10, 20)
    folder.save(25, state(25), "weights", is_fork_point=True)
    folder.save(30, state(30), "weights", is_fork_point=False)
    assert list(folder.checkpoints("state")) == [20, 25, 30]
    assert list(folder.checkpoints("weights")) == [0, 10, 20, 25, 30]
    folder.save(30, state(30), "weights", is_fork_point=False)  # asked to stop just after a checkpoint
    folder.save(30, state(30), "weights", is_fork_point=False)
    assert list(folder.checkpoints("state")) == [20, 25, 30], "saving a step again costs no generation"


def test_what_a_stop_stores_beyond_the_cadence_is_gone_at_the_end(tmp_path: Path) -> None:
    straight, stopped = folder_with(tmp_path / "straight", 10, 20, 30), folder_with(tmp_path / "stopped", 10, 13, 20)
    stopped.save(27, state(27), "weights", is_fork_point=False)
    stopped.save(30, state(30), "weights", is_fork_point=False)
    for folder in (straight, stopped):
        folder.save(100, state(100), "weights", is_fork_point=True)
        folder.finish(RunOutcome("never"))
    assert everything_under(straight.path) == everything_under(stopped.path)
    assert list(stopped.checkpoints("state")) == [100]
    assert set(json.loads((stopped.path / "manifest.json").read_bytes())) == {"run", *names_of(stopped)}


@pytest.mark.parametrize(
    ("keep", "kinds"),
    [("weights", {"weights", "state"}), ("state", {"state"}), ("none", set())],
)
def test_what_is_kept(keep: str, kinds: set[str], tmp_path: Path) -> None:
    folder = folder_with(tmp_path)
    for step in (0, 10, 20, 30):
        folder.save(step, state(step), keep, is_fork_point=False)
    names = names_of(folder)
    assert {name.partition("-")[0] for name in names} == kinds
    if keep == "state":
        assert list(folder.checkpoints("state")) == [0, 10, 20, 30]
    assert list(folder.checkpoints("weights")) == ([0, 10, 20, 30] if kinds else [])
    for step in folder.checkpoints("weights"):
        weights = folder.weights_at(step)
        assert weights["embed.W_E"].equal(state(step)["embed.W_E"])


def test_a_state_not_after_a_step_is_found(tmp_path: Path) -> None:
    folder = folder_with(tmp_path)
    for step in (0, 10, 20):
        folder.save(step, state(step), "state", is_fork_point=False)
    assert folder.latest_state(at_most=19)[0] == 10
    assert folder.latest_state(at_most=20)[0] == 20
