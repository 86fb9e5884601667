"""Job arrays and the controller's answers, without a cluster."""

import contextlib
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from grokscope.errors import InputError
from grokscope.jobs import slurm
from grokscope.jobs.shards import Line, UnfinishedError, shards_of
from grokscope.jobs.slurm import Job, Queue, run_on_slurm
from grokscope.runs.plans import encode_plan
from grokscope.specs import Plan
from tiny_runs import TINY


class Jobs:
    """What submitit's executor does when it is handed jobs: the sizes of its arrays, and jobs that have ended."""

    def __init__(self, work: Callable[[str], list[Line]]) -> None:
        self.arrays: list[int] = []
        self.work = work

    @contextmanager
    def batch(self) -> Iterator[None]:
        self.arrays.append(0)
        yield

    def submit(self, job: Job) -> Any:
        self.arrays[-1] += 1
        with pytest.MonkeyPatch.context() as patch, contextlib.suppress(Exception, SystemExit):
            patch.setattr(slurm, "work_on", self.work)
            job()
        return SimpleNamespace(job_id="7_0", done=lambda: True, result=unpickled)


def unpickled() -> None:
    raise AssertionError("submitit's `result` loads a pickle")


def test_no_array_is_larger_than_a_cluster_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slurm, "ARRAY", 4)
    shards = shards_of(Plan("runs", tuple(TINY.with_seed(seed) for seed in range(10))), runs_per_shard=1)
    jobs, ended = Jobs(lambda plan: [{"run": plan}]), dict[int, str]()
    for shard, reports in filter(None, slurm._ended_jobs(jobs, tmp_path, None, shards)):
        assert isinstance(reports, list)
        ended[shard.number] = reports[0]["run"]
    assert jobs.arrays == [4, 4, 2]
    assert ended == {shard.number: encode_plan(shard.plan).decode() for shard in shards}


def failing(error: BaseException) -> Callable[[str], list[Line]]:
    def work(plan: str) -> list[Line]:
        raise error

    return work


@pytest.mark.parametrize(
    ("work", "expected"),
    [
        (failing(InputError("no task 'add'")), InputError("no task 'add'")),
        (failing(UnfinishedError("it was asked to stop")), RuntimeError("it was asked to stop")),
        (failing(ZeroDivisionError("1/0")), RuntimeError("1/0")),
        (failing(UnfinishedError("", [signal.SIGTERM])), RuntimeError("job 7_0 ended without an answer")),
        (lambda plan: ["no report"], RuntimeError("the answer of job 7_0 is damaged")),
    ],
    ids=["bad input", "unfinished", "failed", "lost", "damaged"],
)
def test_what_failed_is_read_from_a_file_and_not_from_a_pickle(
    work: Callable[[str], list[Line]], expected: Exception, tmp_path: Path
) -> None:
    [(_, found)] = filter(None, slurm._ended_jobs(Jobs(work), tmp_path, None, shards_of(Plan("runs", (TINY,)))))
    assert (type(found), str(found)) == (type(expected), str(expected))


Answer = Callable[[str], None]


@pytest.fixture
def answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Answer:
    """What `squeue` prints from now on; nothing and status 1 if that is empty."""
    program, printed = tmp_path / "squeue", tmp_path / "printed"
    program.write_text(f'#!/bin/sh\ntest -s {printed} || {{ echo "no socket" >&2; exit 1; }}\ncat {printed}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return lambda text: printed.write_text(text) and None


def test_a_job_has_ended_when_two_answers_do_not_call_it_waiting_or_running(answer: Answer) -> None:
    lines: list[dict[str, Any]] = []
    queue, jobs = Queue(lines.append, every=0.0), ["7_0", "7_1", "7_2"]
    answer("7_0 RUNNING None\n7_1 TIMEOUT TimeLimit\n8 FAILED NonZeroExitCode\n")
    assert queue.ended(jobs) == {}
    answer("7_0 RUNNING None\n7_1 TIMEOUT TimeLimit\n7_2 COMPLETING None\n")
    assert queue.ended(jobs) == {"7_1": "TIMEOUT"}, "and 7_2, which was not known, is there again"
    answer("7_0 NODE_FAIL None\n")
    assert queue.ended(["7_0", "7_2"]) == {}
    assert queue.ended(["7_0", "7_2"]) == {"7_0": "NODE_FAIL", "7_2": "UNKNOWN"}


def test_jobs_are_counted_by_state_and_by_why_they_wait(answer: Answer) -> None:
    lines: list[dict[str, Any]] = []
    queue = Queue(lines.append, every=0.0)
    states = [
        "RUNNING None",
        "PENDING BeginTime",
        "RUNNING None",
        "PENDING ReqNodeNotAvail, UnavailableNodes:node[1-4]",
    ]
    states += ["FAILED None", "PENDING None"]
    answer("".join(f"7_{task} {state}\n" for task, state in enumerate(states)))
    queue.ended([f"7_{task}" for task in range(5)])
    assert lines == [{"jobs": "jobs: 2 running, 1 pending (BeginTime), 1 pending (ReqNodeNotAvail)"}]
    queue.ended(["7_4"])
    assert lines[1:] == [{"jobs": ""}]


def test_a_controller_that_does_not_answer_is_named_once_and_ends_no_job(answer: Answer) -> None:
    lines: list[dict[str, Any]] = []
    queue = Queue(lines.append, every=0.0)
    for text in ("", "", "", "7_0 RUNNING None\n"):
        answer(text)
        assert queue.ended(["7_0"]) == {}
    assert [line["notice"] for line in lines if "notice" in line] == [
        "SLURM's controller does not answer, waiting: no socket",
        "SLURM's controller answers again",
    ]
    answer("")
    with pytest.raises(InputError, match="controller has not answered for 0 minutes"):
        queue.wait(longest=0.0)


def test_interrupted_the_driver_says_what_becomes_of_its_jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("submitit")
    plan, lines = Plan(str(tmp_path / "runs"), (TINY,)), list[dict[str, Any]]()

    def interrupted(*arguments: object) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(slurm, "drive", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_on_slurm(plan, lines.append, tmp_path / "jobs", cluster="local")
    (line,) = lines
    assert line["notice"].startswith("the jobs that were submitted go on: `grokscope status ")
    assert f"`grokscope cancel {plan.out}` ends them" in line["notice"]
