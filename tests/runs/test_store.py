import errno
import fcntl
import json
import os
import pickle
import shutil
import socket
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor

from grokscope.errors import InputError
from grokscope.runs import (
    BusyError,
    RunFolder,
    Store,
    locks,
    run_name,
)
from grokscope.files import DamagedError, write_atomically
from grokscope.specs import Cadence, RunSpec, Training
from grokscope.training import checkpoint
from grokscope.training.checkpoint import load_tensors, save_tensors

SPEC = RunSpec(training=Training(steps=100), checkpoints=Cadence(every=10, at=(25,)))
NEVER_ENTERED = 3
ROWS = [{"step": step, "norm": 0.1 + step / 3, "mode": 5.0} for step in (0, 10, 20)]


def state(step: int) -> dict[str, Tensor]:
    names = ("embed.W_E", "first.embed.W_E", "second.embed.W_E")
    return {**{name: torch.full((5, 3), step + i / 8) for i, name in enumerate(names)}, "step": torch.tensor([step])}


def folder_with(path: Path, *steps: int) -> RunFolder:
    folder = Store(path).add(SPEC)
    for step in steps:
        folder.save(step, state(step), "weights", is_fork_point=False)
    return folder


def everything_under(path: Path) -> dict[str, bytes | None]:
    return {str(p.relative_to(path)): p.read_bytes() if p.is_file() else None for p in sorted(path.rglob("*"))}


def names_of(folder: RunFolder) -> list[str]:
    return sorted(p.name for p in folder.path.glob("*.safetensors"))


# Names: nothing outside the store is touched.


@pytest.mark.parametrize(
    "task",
    [
        "../../x",
        "/etc/passwd",
        "..",
        ".",
        "a/",
        "a\0b",
        "x" * 10_000,
        "x.",
        " ",
        "C:\\x",
        "\u202etxt",
        "<img onerror=alert(1)>",
        "$(touch x)\n",
        "table:../../x#0123456789abcdef",
        f"table:/{'y' * 5000}.json#0123456789abcdef",
    ],
    ids=lambda task: repr(task[:30]),
)
def test_a_hostile_name_makes_one_folder_inside_the_store(task: str, tmp_path: Path) -> None:
    store = Store(tmp_path / "a" / "b" / "runs")
    folder = store.add(replace(SPEC, task=task))
    made = {p for p in tmp_path.rglob("*") if p.is_file()}
    assert made == {store.path / folder.name / "format", store.path / folder.name / "spec.json"}
    assert len(folder.name) <= 100
    assert set(folder.name) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_+-.")
    assert [found.spec for found in store] == [folder.spec]


def test_runs_that_differ_only_in_letter_case_have_names_that_differ_in_more(tmp_path: Path) -> None:
    one, other = run_name(replace(SPEC, task="s5")), run_name(replace(SPEC, task="S5"))
    assert one.lower() != other.lower()


def test_a_folder_that_leads_out_of_the_store_is_refused(tmp_path: Path) -> None:
    outside, store = tmp_path / "outside", Store(tmp_path / "runs")
    outside.mkdir()
    store.path.mkdir()
    (store.path / run_name(SPEC)).symlink_to(outside)
    with pytest.raises(InputError, match=run_name(SPEC)):
        store.add(SPEC)
    assert list(outside.iterdir()) == []


def test_a_spec_that_differs_from_the_stored_one_is_refused_and_nothing_is_changed(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, 10)
    (folder.path / "spec.json").write_text(replace(SPEC, train_fraction=0.4).to_json())
    before = everything_under(tmp_path)
    with pytest.raises(InputError, match=r"holds another run than the one asked for; nothing was changed"):
        Store(tmp_path).add(SPEC)
    assert everything_under(tmp_path) == before


def test_two_workers_may_add_a_run_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replaces = Path.replace

    def overtaken(partial: Path, target: Path) -> Path:
        """Just before our spec is in its place, another worker has put its own there, and works already."""
        monkeypatch.setattr(Path, "replace", replaces)
        partial.rename(partial.with_name(".spec.json.1.partial"))
        with Store(tmp_path).add(SPEC).locked():
            return replaces(partial, target)

    monkeypatch.setattr(Path, "replace", overtaken)
    assert Store(tmp_path).add(SPEC).spec == SPEC
    assert [found.spec for found in Store(tmp_path)] == [SPEC]


def test_a_table_may_move_and_its_run_stays_the_same(tmp_path: Path) -> None:
    here, there = (replace(SPEC, task=f"table:{place}/mine.json#0123456789abcdef") for place in ("here", "there"))
    stored = Store(tmp_path).add(here)
    again = Store(tmp_path).add(there)
    assert again.path == stored.path
    assert again.spec.task == there.task, "the file is read from where it is now"


@pytest.mark.parametrize("content", [b"", b"{", b'{"tsk": 1}', b"\xff\xfe", b"[]"])
def test_a_damaged_spec_is_named(content: bytes, tmp_path: Path) -> None:
    folder = folder_with(tmp_path)
    (folder.path / "spec.json").write_bytes(content)
    for look in (lambda: list(Store(tmp_path)), lambda: Store(tmp_path).add(SPEC)):
        with pytest.raises(DamagedError, match=rf"{folder.name}/spec.json"):
            look()


@pytest.mark.parametrize("content", [b"", b"{", b"3", b"[]", b"null"])
def test_a_damaged_outcome_is_named(content: bytes, tmp_path: Path) -> None:
    folder = folder_with(tmp_path)
    (folder.path / "outcome.json").write_bytes(content)
    with pytest.raises(DamagedError, match=r"outcome.json"):
        _ = folder.outcome


def test_a_store_cannot_be_made_where_a_file_is(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("mine")
    with pytest.raises(InputError, match=r"could not be made: (Not a directory|File exists)"):
        Store(tmp_path / "runs").add(SPEC)
    assert (tmp_path / "runs").read_text() == "mine"


def test_runs_are_found_by_name_word_hash_and_beginning(tmp_path: Path) -> None:
    store = Store(tmp_path)
    runs = [store.add(SPEC.with_seed(seed)) for seed in (1, 10, 11)]
    assert [found.name for found in store] == sorted(run.name for run in runs)
    for run in runs:
        assert store.find(run.name).name == run.name
        assert store.find(run.spec.content_hash).name == run.name
        assert store.find(run.spec.content_hash[:10]).name == run.name
    assert store.find("add_mod97_s1").name == runs[0].name, "seed 1 is meant, not the beginning of 10 and 11"
    with pytest.raises(InputError, match=r"'add_mod97_s' names 3 runs, such as add_mod97_s1-.* and add_mod97_s10-"):
        store.find("add_mod97_s")
    with pytest.raises(InputError, match=r"there is no run 'ad_mod97_s11' in .*; did you mean 'add_mod97_s11'"):
        store.find("ad_mod97_s11")


def test_a_folder_whose_name_would_trouble_a_terminal_is_not_ours(tmp_path: Path) -> None:
    folder = folder_with(tmp_path)
    for name in ("\x1b]0;x\x07", "a\nb", "\u202egnp.exe", "\udcff"):
        shutil.copytree(folder.path, tmp_path / name)
    assert [found.name for found in Store(tmp_path)] == [folder.name]


def test_other_things_in_the_folder_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "figures").mkdir()
    folder_with(tmp_path, 10)
    assert len(list(Store(tmp_path))) == 1
    assert (tmp_path / "notes.txt").read_text() == "mine"


# The log: append-only, whole records only.


def test_the_log_gives_back_what_was_appended(tmp_path: Path) -> None:
    folder = folder_with(tmp_path)
    assert folder.log() == []
    for row in (*ROWS, {"step": 30, "norm": float("nan"), "mode": float("inf")}):
        folder.append(row)
    assert folder.log() == [*ROWS, {"step": 30, "norm": None, "mode": None}]
    for line in (folder.path / "log.jsonl").read_bytes().splitlines():
        text, _, checksum = line.partition(b"\t")
        assert int(checksum, 16) == zlib.crc32(text)
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


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_log_that_cannot_grow_names_its_path_and_the_free_bytes(tmp_path: Path) -> None:
    folder = folder_with(tmp_path)
    (folder.path / "log.jsonl").symlink_to("/dev/full")
    with pytest.raises(InputError, match=r"log\.jsonl' could not be written: No space left on device; [0-9,]+ bytes"):
        folder.append(ROWS[0])


# Checkpoints: whole or absent.


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


def test_a_write_where_no_folder_can_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InputError, match="could not be written: Not a directory"):
        write_atomically(tmp_path / "file" / "x", b"")
    with pytest.raises(InputError, match="could not be written: File name too long"):
        write_atomically(tmp_path / ("x" * 300), b"")


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


def test_a_missing_checkpoint_falls_back_and_its_step_is_told(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, 10, 20, 30)
    for kind in ("weights", "state"):
        (folder.path / f"{kind}-00000030.safetensors").unlink()
    assert folder.latest_state()[0] == 20
    with pytest.raises(InputError, match=r"has no weights at step 30; stored steps: '10, 20'"):
        folder.weights_at(30)


def test_a_pickle_is_refused_even_if_the_manifest_vouches_for_it(
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
        folder.finish({"outcome": "never"})
    assert everything_under(straight.path) == everything_under(stopped.path)
    assert list(stopped.checkpoints("state")) == [100]
    assert set(json.loads((stopped.path / "manifest.json").read_bytes())) == set(names_of(stopped))


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


# Locks: one writer.


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_second_writer_is_refused_and_told_who_the_first_is(tmp_path: Path) -> None:
    folder = folder_with(tmp_path)
    heard, said = os.pipe()
    with folder.locked():
        child = os.fork()
        if child == 0:
            try:
                with folder.locked():
                    os.write(said, b"entered")
            except BusyError as error:
                os.write(said, str(error).encode())
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        sentence = f"{folder.name} is being written by process {os.getpid()} on {socket.gethostname()}"
        assert os.read(heard, 1000).decode() == sentence
    with folder.locked():
        pass
    os.close(heard)
    os.close(said)


def test_a_lock_is_released_when_its_work_fails(tmp_path: Path) -> None:
    folder = folder_with(tmp_path)
    with pytest.raises(ZeroDivisionError), folder.locked():
        raise ZeroDivisionError
    with folder.locked(), pytest.raises(BusyError, match=f"process {os.getpid()} on"), folder.locked():
        pass
    assert not (folder.path / "lock").exists()


def dead_process() -> int:
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    return child


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("left_behind", ["dead", "reused", "torn", "empty", "foreign", "nonsense"])
def test_the_lock_of_a_dead_process_is_taken_over(left_behind: str, tmp_path: Path) -> None:
    """Also if another process has its number by now, or the machine it died on has another name."""
    folder = folder_with(tmp_path)
    content = {
        "dead": json.dumps({"host": socket.gethostname(), "process": dead_process()}),
        "reused": json.dumps({"host": socket.gethostname(), "process": 1}),
        "torn": '{"host": "x", "proc',
        "empty": "",
        "foreign": json.dumps({"host": "elsewhere", "process": 1}),
        "nonsense": "[\0]",
    }[left_behind]
    (folder.path / "lock").write_text(content)
    with folder.locked():
        assert json.loads((folder.path / "lock").read_bytes())["process"] == os.getpid()
    assert not (folder.path / "lock").exists()


def test_a_lock_that_leads_elsewhere_is_not_followed(tmp_path: Path) -> None:
    folder = folder_with(tmp_path / "runs")
    (tmp_path / "precious").write_text("mine")
    (folder.path / "lock").symlink_to(tmp_path / "precious")
    with pytest.raises(InputError, match="could not be written"), folder.locked():
        pass
    assert (tmp_path / "precious").read_text() == "mine"


def test_a_lock_that_its_owner_removes_while_we_wait_is_not_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, calls = folder_with(tmp_path), []

    def flock(descriptor: int, operation: int) -> None:
        if not calls:
            (folder.path / "lock").unlink()
        calls.append(operation)
        fcntl.flock(descriptor, operation)

    with monkeypatch.context() as patch:
        patch.setattr(locks, "fcntl", SimpleNamespace(flock=flock, LOCK_EX=fcntl.LOCK_EX, LOCK_NB=fcntl.LOCK_NB))
        held = folder.locked()
        held.__enter__()
    assert len(calls) == 2, "the first file was nobody's any more"
    with pytest.raises(BusyError), folder.locked():
        pass
    held.__exit__(None, None, None)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_never_two_at_once_however_many_try(tmp_path: Path) -> None:
    folder = folder_with(tmp_path)

    def try_often() -> int:
        entered = 0
        for _ in range(150):
            try:
                with folder.locked():
                    entered += 1
                    (folder.path / "inside").open("x").close()
                    (folder.path / "inside").unlink()
            except BusyError:
                pass
        return entered

    children = []
    for _ in range(4):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                status = 0 if try_often() else NEVER_ENTERED
            finally:
                os._exit(status)
        children.append(child)
    statuses = {os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children}
    assert statuses in ({0}, {0, NEVER_ENTERED})


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_what_a_killed_writer_left_half_written_is_removed(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, 10)
    (folder.path / ".state-00000020.safetensors.123.partial").write_bytes(b"half")
    with folder.locked():
        pass
    assert not list(folder.path.glob(".*"))
    assert folder.latest_state()[0] == 10
