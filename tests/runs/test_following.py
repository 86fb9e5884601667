import math
from dataclasses import replace
from pathlib import Path

import pytest

from grokscope.runs import RunFolder, RunOutcome, Store, following
from grokscope.runs.following import FollowedRun, Follower
from grokscope.specs import Fork, Membership, RunSpec

SPEC = RunSpec()


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return Store(tmp_path).add(SPEC)


def evaluation(step: int, **more: float) -> dict[str, float]:
    return {"step": step, "train_accuracy": 1.0, "validation_accuracy": step / 1000, "fsd": 0.5, "norm": 1.0, **more}


def only(follower: Follower) -> FollowedRun:
    (run,) = follower.update()
    return run


def test_each_update_adds_what_was_appended(folder: RunFolder) -> None:
    follower = Follower(folder.path.parent)
    assert (only(follower).rows, only(follower).written, only(follower).timeline) == ({}, None, None)
    for step in (0, 100, 200):
        folder.append(evaluation(step))
        assert list(only(follower).rows) == list(range(0, step + 1, 100))
    assert only(follower).series("validation_accuracy") == [(0, 0.0), (100, 0.1), (200, 0.2)]
    assert only(follower).steps_left == SPEC.training.steps - 200


def test_a_line_that_is_still_being_written_waits_for_its_end(folder: RunFolder) -> None:
    follower = Follower(folder.path.parent)
    folder.append(evaluation(0))
    folder.append(evaluation(100))
    log = folder.path / "log.jsonl"
    whole = log.read_bytes()
    for cut in range(len(whole) // 2 + 5, len(whole)):
        log.write_bytes(whole[:cut])
        assert list(only(follower).rows) == [0]
    log.write_bytes(whole)
    assert list(only(follower).rows) == [0, 100]


def test_a_rewound_log_is_read_anew_even_if_it_has_grown_past_where_it_was(folder: RunFolder) -> None:
    follower = Follower(folder.path.parent)
    for step in (0, 100, 200, 300):
        folder.append(evaluation(step))
    assert only(follower).step == 300
    folder.rewind(100)
    assert list(only(follower).rows) == [0, 100]
    for step in (200, 300):
        folder.append(evaluation(step))
    assert only(follower).step == 300
    folder.rewind(100)  # and goes another way, as another version of torch may, before anybody looks
    for step in (200, 300, 400):
        folder.append(evaluation(step, fsd=0.123456789))
    assert [value for _, value in only(follower).series("fsd")] == [0.5, 0.5, 0.123456789, 0.123456789, 0.123456789]


def test_damaged_lines_are_left_out(folder: RunFolder) -> None:
    for step in (0, 100, 200):
        folder.append(evaluation(step))
    log = folder.path / "log.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    lines[1] = lines[1].replace(b"0.5", b"0.6")
    log.write_bytes(b"".join(lines) + b"no record\n\n")
    assert list(only(Follower(folder.path.parent)).rows) == [0, 200]


def test_runs_come_end_vanish_and_begin_again(folder: RunFolder) -> None:
    follower = Follower(folder.path.parent)
    other = Store(folder.path.parent).add(SPEC.with_seed(1))
    assert len(follower.update()) == 2
    folder.append(evaluation(0))
    folder.finish(RunOutcome("never"))
    ended = next(run for run in follower.update() if run.name == folder.name)
    assert ended.is_finished
    assert (ended.steps_left, ended.step) == (0, 0)
    (folder.path / "outcome.json").unlink()  # and continues
    folder.append(evaluation(100))
    assert next(run for run in follower.update() if run.name == folder.name).step == 100
    for path in other.path.iterdir():
        path.unlink()
    other.path.rmdir()
    assert [run.name for run in follower.update()] == [folder.name]


def test_a_spec_that_cannot_be_read_yet_is_tried_again(tmp_path: Path) -> None:
    folder = Store(tmp_path).add(SPEC)
    content = (folder.path / "spec.json").read_bytes()
    (folder.path / "spec.json").write_bytes(content[:10])
    follower = Follower(tmp_path)
    assert follower.update() == []
    (folder.path / "spec.json").write_bytes(content)
    assert only(follower).spec == SPEC


def test_a_fork_begins_at_its_step_and_undefined_values_are_nan(tmp_path: Path) -> None:
    fork = Store(tmp_path).add(replace(SPEC, fork=Fork(SPEC.content_hash, 1000)))
    run = only(Follower(tmp_path))
    assert (run.first, run.step, run.steps_left) == (1000, 1000, 14_000)
    fork.append(evaluation(1000, fsd=math.nan))
    assert math.isnan(only(Follower(tmp_path)).series("fsd")[0][1])


def test_a_followed_run_is_the_record_that_its_folder_gives(folder: RunFolder) -> None:
    follower = Follower(folder.path.parent)
    for step in (0, 100, 200):
        folder.append(evaluation(step))
        only(follower)
    folder.finish(RunOutcome("grokked", memorized=0, grokked=200))
    followed, stored = only(follower).record, folder.record()
    assert followed.outcome == stored.outcome
    assert followed.evaluations == stored.evaluations
    assert repr(followed.timeline) == repr(stored.timeline)  # a norm of NaN is not equal to itself


def test_a_run_from_the_index_keeps_the_studies_it_was_made_for(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "PAYS_FROM", 1)
    member = Membership("synchronization", "base", "add_mod97_s0")
    folder.add_memberships([member])
    folder.append(evaluation(0))
    folder.finish(RunOutcome("never"))
    run = only(Follower(folder.path.parent, sparing=True))
    assert (run.is_read, run.record.made_for) == (False, (member,))
