"""One writer at a time, and no lock outlives its process."""

import fcntl
import json
import os
import socket
from pathlib import Path
from types import SimpleNamespace

import pytest
from small_folders import folder_with

from grokscope.errors import InputError
from grokscope.runs import (
    BusyError,
    locks,
)

NEVER_ENTERED = 3


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_second_writer_is_rejected_and_learns_who_the_first_is(tmp_path: Path) -> None:
    folder = folder_with(tmp_path)
    heard, said = os.pipe()
    with folder.lock():
        child = os.fork()
        if child == 0:
            try:
                with folder.lock():
                    os.write(said, b"entered")
            except BusyError as error:
                os.write(said, str(error).encode())
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        sentence = f"{folder.name} is being written by process {os.getpid()} on {socket.gethostname()}"
        assert os.read(heard, 1000).decode() == sentence
    with folder.lock():
        pass
    os.close(heard)
    os.close(said)


def test_a_lock_is_released_when_its_work_fails(tmp_path: Path) -> None:
    folder = folder_with(tmp_path)
    with pytest.raises(ZeroDivisionError), folder.lock():
        raise ZeroDivisionError
    with folder.lock(), pytest.raises(BusyError, match=f"process {os.getpid()} on"), folder.lock():
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
    with folder.lock():
        assert json.loads((folder.path / "lock").read_bytes())["process"] == os.getpid()
    assert not (folder.path / "lock").exists()


def test_a_lock_that_leads_elsewhere_is_not_followed(tmp_path: Path) -> None:
    folder = folder_with(tmp_path / "runs")
    (tmp_path / "precious").write_text("mine")
    (folder.path / "lock").symlink_to(tmp_path / "precious")
    with pytest.raises(InputError, match="is a link, not a file"), folder.lock():
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
        held = folder.lock()
        held.__enter__()
    assert len(calls) == 2, "the first file was nobody's any more"
    with pytest.raises(BusyError), folder.lock():
        pass
    held.__exit__(None, None, None)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_never_two_at_once_however_many_try(tmp_path: Path) -> None:
    folder = folder_with(tmp_path)

    def try_often() -> int:
        entered = 0
        for _ in range(150):
            try:
                with folder.lock():
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
    with folder.lock():
        pass
    assert not list(folder.path.glob(".*"))
    assert folder.latest_state()[0] == 10
