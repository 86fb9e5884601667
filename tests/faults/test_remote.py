"""Stores without atomic renames: S3 (a real server on loopback), and a folder that refuses every rename."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from small_runs import SMALL, Count, contents, seeds

from grokscope.jobs import run_all
from grokscope.jobs.shards import work_on
from grokscope.runs import (
    Store,
    keep_plan,
    open_store,
    pull,
    run_name,
)
from grokscope.runs import remote as remote_module
from grokscope.runs.plans import encode_plan
from grokscope.runs.remote import Commit, Remote
from grokscope.runs.remote_doctor import examine_remote
from grokscope.specs import Plan

pytestmark = [pytest.mark.faults, pytest.mark.timeout(600), pytest.mark.filterwarnings("ignore")]
RUNS = seeds(4)


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    path, threads = tmp_path_factory.mktemp("straight"), torch.get_num_threads()
    torch.set_num_threads(1)
    run_all(RUNS, Store(path), compiled=False)
    torch.set_num_threads(threads)
    return contents(path)


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    """A bucket of moto's server."""
    pytest.importorskip("s3fs")
    server = pytest.importorskip("moto.server").ThreadedMotoServer(port=0)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {
            "AWS_ENDPOINT_URL": f"http://{host}:{port}",
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
            "AWS_DEFAULT_REGION": "us-east-1",
        }.items():
            patch.setenv(name, value)
        import fsspec

        fsspec.filesystem("s3").mkdir("bucket")
        yield "s3://bucket/sweep"
    server.stop()


@pytest.fixture
def share(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A folder in which nothing can be renamed."""
    place = tmp_path / "share"

    def refuses(real):
        def rename(source, target, *more, **named):
            if str(target).startswith(str(place)):
                raise OSError("this disk has no atomic rename")
            return real(source, target, *more, **named)

        return rename

    monkeypatch.setattr(os, "rename", refuses(os.rename))
    monkeypatch.setattr(os, "replace", refuses(os.replace))
    return f"file://{place}/sweep"


def pulled(address: str, to: Path) -> dict[str, object]:
    to.mkdir(exist_ok=True)
    pull(address, to)
    return contents(to)


@pytest.mark.parametrize("place", ["s3", "share"])
def test_the_same_sweep_gives_the_same_bytes(
    place: str, request: pytest.FixtureRequest, tmp_path: Path, expected: dict[str, object]
) -> None:
    address = request.getfixturevalue(place)
    lines = work_on(encode_plan(Plan(address, RUNS)).decode())
    assert len(lines) == len(RUNS)
    assert work_on(encode_plan(Plan(address, RUNS)).decode()) == [], "what is committed is not trained again"
    assert pulled(address, tmp_path / "copy") == expected
    assert not list(examine_remote(Remote(address)))
    with open_store(address) as store:
        assert all(map(store.is_finished, RUNS))
        assert {folder.name for folder in store} == set(map(run_name, RUNS))


WORKER = """
    import sys
    from grokscope.runs import remote
    from grokscope.jobs.worker import main

    remote.COMMIT_EVERY = 0.0
    sys.exit(main(["--spec", sys.argv[1]]))
"""


@pytest.mark.parametrize("place", ["s3", "share"])
def test_killed_again_and_again_it_goes_on_from_the_last_commit(
    place: str, request: pytest.FixtureRequest, tmp_path: Path, expected: dict[str, object], injected: Count
) -> None:
    address = request.getfixturevalue(place) + "-killed"
    plan = tmp_path / "plan.json"
    plan.write_text(Plan(address, RUNS).to_json())
    command = [sys.executable, "-c", textwrap.dedent(WORKER), str(plan)]
    for lines in (2, 3, 6, 5):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        for _ in range(lines):
            process.stdout.readline()
        time.sleep(0.05 * lines)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        injected()
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0
    assert pulled(address, tmp_path / "copy") == expected
    remote = Remote(address)
    for spec in RUNS:
        assert [commit.finished for commit in remote.commits(run_name(spec))] == [True], "committed exactly once"


@pytest.mark.parametrize("damage", ["torn marker", "torn file", "missing file"])
def test_what_is_torn_is_never_believed(
    damage: str,
    share: str,
    tmp_path: Path,
    expected: dict[str, object],
    injected: Count,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(remote_module, "COMMIT_EVERY", 0.0)
    remote, name = Remote(share), run_name(SMALL.with_seed(0))
    work_on(encode_plan(Plan(share, RUNS)).decode())
    (commit,) = remote.commits(name)
    half = Commit(999, "f" * 16, True, commit.files).to_json()
    if damage == "torn marker":
        remote.write(f"{name}/commit-00000999-{'f' * 16}.json", half[: len(half) // 2])
    else:
        remote.write(f"{name}/commit-00000999-{'f' * 16}.json", half)
        if damage == "torn file":
            sha256, _ = commit.files["log.jsonl"]
            remote.write(f"{name}/files-{'f' * 16}/log.jsonl@{sha256[:16]}", b"half")
    injected()
    assert pulled(share, tmp_path / "copy") == expected


@pytest.mark.parametrize("place", ["s3", "share"])
def test_two_writers_who_end_one_run_leave_one_whole_end(
    place: str, request: pytest.FixtureRequest, injected: Count
) -> None:
    address, run = request.getfixturevalue(place) + "-twice", run_name(SMALL)
    files = {"spec.json": SMALL.to_json().encode(), "outcome.json": b"{}"}
    slow, quick, third = (Remote(address) for _ in range(3))
    known: set[str] = set()
    slow.commit(run, 10, {"spec.json": files["spec.json"]}, finished=False, known=known)
    quick.commit(run, 30, files, finished=True, known=set())
    assert [commit.writer for commit in quick.commits(run)] == [quick.writer], "what was unfinished is cleared away"
    injected()
    slow.commit(run, 30, files, finished=True, known=known)  # which knows of files that are gone
    (commit,) = third.commits(run)
    assert (commit.writer, third.content(run, commit)) == (quick.writer, files)
    assert third.names(run) == sorted([f"commit-00000030-{quick.writer}.json", f"files-{quick.writer}"])
    place_of = f"{run}/files-{quick.writer}/outcome.json@{commit.files['outcome.json'][0][:16]}"
    quick.write(place_of, b"[]")  # and now that end is damaged
    injected()
    third.commit(run, 30, files, finished=True, known=set())
    whole = next(one for one in third.commits(run) if one.writer == third.writer)
    assert third.content(run, whole) == files


ENDED = {"spec.json": SMALL.to_json().encode(), "outcome.json": b"{}"}


def test_an_end_whose_files_another_removed_while_they_were_written_is_whole(share: str, injected: Count) -> None:
    slow, quick, run = Remote(share), Remote(share), run_name(SMALL)
    write = slow.write

    def overtaken(name: str, content: bytes) -> None:
        if "/commit-" in name:  # all of its files are there, and nothing says that it is at its end
            quick.commit(run, 30, ENDED, finished=True, known=set())
            injected()
        write(name, content)

    slow.write = overtaken
    slow.commit(run, 30, ENDED, finished=True, known=set())
    commits = quick.commits(run)
    assert {commit.writer for commit in commits} == {slow.writer, quick.writer}
    assert [quick.content(run, commit) for commit in commits] == [ENDED, ENDED]


@pytest.mark.parametrize("finished", [True, False])
def test_files_that_another_removed_are_written_again_when_its_end_is_damaged(
    finished: bool, share: str, injected: Count
) -> None:
    slow, quick, run = Remote(share), Remote(share), run_name(SMALL)
    known: set[str] = set()
    slow.commit(run, 10, {"spec.json": ENDED["spec.json"]}, finished=False, known=known)
    quick.commit(run, 30, ENDED, finished=True, known=set())
    (end,) = slow.commits(run)
    quick.write(f"{run}/files-{quick.writer}/outcome.json@{end.files['outcome.json'][0][:16]}", b"[]")
    injected()
    slow.commit(run, 30, ENDED, finished, known)
    (ours,) = (commit for commit in slow.commits(run) if commit.writer == slow.writer)
    assert slow.content(run, ours) == ENDED


def damaged(remote: Remote, run: str, file: str) -> None:
    (commit,) = remote.commits(run)
    remote.write(f"{run}/files-{commit.writer}/{file}@{commit.files[file][0][:16]}", b"altered")


def test_a_mended_run_that_no_plan_names_is_found_again(
    share: str, tmp_path: Path, expected: dict[str, object], injected: Count
) -> None:
    remote, run = Remote(share), run_name(RUNS[0])
    work_on(encode_plan(Plan(share, RUNS)).decode())  # as a worker does, which remembers no plan
    damaged(remote, run, "log.jsonl")
    injected()
    (finding,) = examine_remote(remote)
    assert finding.remedy
    assert not finding.mended
    (mended,) = examine_remote(remote, repair=True)
    assert mended.mended
    assert not list(examine_remote(remote))
    with open_store(share) as store:
        unfinished = tuple(folder.spec for folder in store if not folder.outcome.is_finished)
    assert unfinished == RUNS[:1], "resume continues what the store lists as unfinished"
    work_on(encode_plan(Plan(share, unfinished)).decode())
    assert pulled(share, tmp_path / "copy") == expected


def test_a_commit_that_is_the_last_trace_of_its_run_is_kept(share: str, injected: Count) -> None:
    remote, run = Remote(share), run_name(RUNS[0])
    work_on(encode_plan(Plan(share, RUNS[:1])).decode())
    damaged(remote, run, "spec.json")
    injected()
    (finding,) = examine_remote(remote, repair=True)
    assert (finding.remedy, finding.mended) == ("", False)
    assert "nothing else here says what was run" in finding.problem
    assert len(remote.commits(run)) == 1
    with open_store(share) as store:
        keep_plan(Plan(share, RUNS[:1]), store)
    (finding,) = examine_remote(remote, repair=True)
    assert finding.mended
    assert not remote.commits(run)


@pytest.mark.parametrize("file", ["../../x", "/etc/passwd", ".ssh", "a/b", "x\0"])
def test_a_commit_that_names_hostile_files_is_not_believed(file: str, injected: Count) -> None:
    injected()
    assert Commit.from_json(Commit(1, "a" * 16, True, {file: ("0" * 64, 1)}).to_json()) is None
    assert Commit.from_json(Commit(1, "a" * 16, True, {"log.jsonl": ("0" * 64, 1)}).to_json()) is not None
