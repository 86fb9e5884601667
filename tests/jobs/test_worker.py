import json
import os
import re
import runpy
import signal
import subprocess
import sys
import textwrap
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from grokscope.jobs import Notice, Progress, run_all
from grokscope.jobs import worker as worker_module
from grokscope.jobs.worker import BAD_INPUT, TRY_AGAIN, main
from grokscope.runs import Store, keep_plan, run_name
from grokscope.specs import Architecture, Cadence, Plan, RunSpec, Training

BLOCKER = runpy.run_path(str(Path(__file__).parents[1] / "test_package.py"))["BLOCKER"]
FIRST = RunSpec(
    task="add_mod7",
    train_fraction=0.7,
    architecture=Architecture(layers=1, width=16, heads=2, mlp_width=32),
    training=Training(steps=50, batch_size=16),
    checkpoints=Cadence(every=4),
    measurements=Cadence(every=2),
)
RUNS = (FIRST, FIRST.with_seed(1), FIRST.with_seed(2))
LINES = sum(len(spec.measurements.steps(spec.training.steps)) for spec in RUNS)


def contents(store: Path) -> dict[str, object]:
    """Every file of the store to its last byte, but for the commit, which may change while tests run."""
    found: dict[str, object] = {}
    for path in sorted(path for path in store.rglob("*") if path.is_file() and path.name[:7] != ".stack-"):
        found[str(path.relative_to(store))] = path.read_bytes()
        if path.name == "outcome.json":
            found[str(path.relative_to(store))] = {**json.loads(path.read_bytes()), "provenance": None, "sha256": None}
    return found


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """The store of the same runs, never interrupted."""
    path = tmp_path_factory.mktemp("straight")
    run_all(RUNS, Store(path), compiled=False)
    return contents(path)


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    path = tmp_path / "plan.json"
    path.write_text(Plan(str(tmp_path / "runs"), RUNS).to_json())
    return path


def worker(plan: Path) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "grokscope.jobs.worker", "--spec", str(plan)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def signalled(plan: Path, after_lines: int, *numbers: signal.Signals, pause: float = 0.0) -> tuple[int, str]:
    """Start a worker, send it signals once it has said so much, and wait; its exit status and what it said last."""
    process = worker(plan)
    for _ in range(after_lines):
        process.stdout.readline()
    for number in numbers:
        time.sleep(pause)
        process.send_signal(number)
    _, errors = process.communicate(timeout=120)
    return process.returncode, errors


# Loads PyTorch once, and then starts and kills one worker after another: real processes, really killed.
KILLER = """
    import json, os, random, signal, sys, time
    from grokscope.jobs.worker import main

    plan, kills = sys.argv[1], int(sys.argv[2])
    sys.stdout = open(os.devnull, "w")
    statuses, chance = [], random.Random()
    for attempt in range(10 * kills):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                status = main(["--spec", plan])
            finally:
                os._exit(status)
        if statuses.count(-9) < kills:
            time.sleep(chance.uniform(0.02, 0.25))
            os.kill(child, signal.SIGKILL)
        statuses.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        if statuses[-1] == 0:
            break
    sys.stderr.write(json.dumps(statuses))
"""


def kill_often(plan: Path, kills: int) -> list[int]:
    """Start the plan's worker again and again, and kill it at random moments, at most so often; its exit statuses."""
    command = [sys.executable, "-c", textwrap.dedent(KILLER), str(plan), str(kills)]
    statuses = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stderr)
    assert statuses[-1] == 0
    assert set(statuses) == {0, -signal.SIGKILL}
    return statuses[:-1]


def test_killed_at_random_moments_it_ends_where_an_uninterrupted_one_does(
    plan: Path, tmp_path: Path, expected: dict[str, object]
) -> None:
    assert len(kill_often(plan, 5)) >= 2, "too quick to be killed: train longer"
    assert contents(tmp_path / "runs") == expected


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_killed_at_fifty_random_moments_it_ends_where_an_uninterrupted_one_does(tmp_path: Path) -> None:
    runs = tuple(
        RunSpec(
            task="add_mod11",
            architecture=Architecture(layers=2, width=16, heads=2, mlp_width=32),
            training=Training(steps=400, batch_size=16),
            checkpoints=Cadence(every=10, at=(77,)),
            measurements=Cadence(every=5),
        ).with_seed(seed)
        for seed in range(3)
    )
    run_all(runs, Store(tmp_path / "straight"), compiled=False)
    (tmp_path / "plan.json").write_text(Plan(str(tmp_path / "runs"), runs).to_json())
    assert len(kill_often(tmp_path / "plan.json", 50)) >= 25, "too quick to be killed so often: train longer"
    assert contents(tmp_path / "runs") == contents(tmp_path / "straight")


def test_asked_to_stop_it_stores_everything_and_says_try_again(
    plan: Path, tmp_path: Path, expected: dict[str, object]
) -> None:
    assert signalled(plan, 3, signal.SIGTERM) == (TRY_AGAIN, "")
    (folder,) = Store(tmp_path / "runs")
    assert not folder.outcome.is_finished
    assert folder.latest_state()[0] == folder.log()[-1]["step"] >= 4, "nothing has to be measured again"
    assert not list(folder.path.glob("lock"))
    assert not list(folder.path.glob(".*"))
    assert signalled(plan, 0) == (0, "")
    assert contents(tmp_path / "runs") == expected


def test_a_second_ctrl_c_ends_it_at_once_and_the_store_is_valid(tmp_path: Path) -> None:
    spec = RunSpec(training=Training(steps=2000), measurements=Cadence(every=None), checkpoints=Cadence(every=None))
    plan = tmp_path / "plan.json"
    plan.write_text(Plan(str(tmp_path / "runs"), (spec,)).to_json())
    status, errors = signalled(plan, 1, signal.SIGINT, signal.SIGINT, pause=0.5)
    assert (status, errors) == (TRY_AGAIN, "")
    folder = Store(tmp_path / "runs").find(run_name(spec))
    assert folder.latest_state()[0] == 0
    with folder.lock():
        pass


def test_two_workers_share_a_plan_and_train_each_run_once(
    plan: Path, tmp_path: Path, expected: dict[str, object]
) -> None:
    both = [worker(plan), worker(plan)]
    said = [process.communicate(timeout=120) for process in both]
    assert [(process.returncode, errors) for process, (_, errors) in zip(both, said, strict=True)] == [(0, "")] * 2
    lines = [json.loads(line) for output, _ in said for line in output.splitlines()]
    assert len(lines) == LINES
    assert set(Counter((line["run"], line["step"]) for line in lines).values()) == {1}
    assert contents(tmp_path / "runs") == expected


def test_it_works_with_everything_but_the_core_packages_blocked(tmp_path: Path) -> None:
    spec = RunSpec(task="S3", training=Training(steps=2, batch_size=8))
    (tmp_path / "plan.json").write_text(Plan(str(tmp_path / "runs"), (spec,)).to_json())
    program = textwrap.dedent(BLOCKER) + textwrap.dedent("""
        from grokscope.jobs.worker import main
        status = main(["--spec", sys.argv[1]])
        for name in ("tyro", "rich", "scipy", "matplotlib", "jaxtyping"):
            assert name not in sys.modules, name
        sys.exit(status)
    """)
    command = [sys.executable, "-c", program, str(tmp_path / "plan.json")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(line["run"], line["step"], line["last"]) for line in lines] == [(run_name(spec), s, 2) for s in (0, 2)]
    assert lines[0]["row"].keys() >= {"train_accuracy", "validation_accuracy", "train_loss", "norm", "fsd"}


@pytest.mark.usefixtures("as_before")
@pytest.mark.parametrize(
    "numbers",
    [
        (signal.SIGINT,),
        (signal.SIGUSR1,),
        (signal.SIGTERM, signal.SIGTERM),  # as SLURM preempts
        (signal.SIGUSR2, signal.SIGTERM),  # as a time limit comes near and is reached
    ],
)
def test_it_listens_to_schedulers_however_often_they_ask(
    numbers: tuple[signal.Signals, ...], plan: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def strike(progress: Progress | Notice) -> None:
        for number in numbers if isinstance(progress, Progress) and progress.step == 2 else ():
            os.kill(os.getpid(), number)

    monkeypatch.setattr(worker_module, "_print", strike)
    assert main(["--spec", str(plan)]) == TRY_AGAIN
    (folder,) = Store(tmp_path / "runs")
    assert folder.latest_state()[0] == folder.log()[-1]["step"] == 2


GOOD = Plan("runs", (FIRST,)).to_dict()


@pytest.mark.usefixtures("as_before")
@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, r"the plan 'plan\.json' cannot be read: .*No such file or directory"),
        (b"\xff", r"Plan is not valid JSON: 'utf-8' codec"),
        (b"", r"Plan is not valid JSON"),
        (b"[]", r"Plan must be an object with named fields, got \[\]"),
        (json.dumps({**GOOD, "devise": "cpu"}).encode(), r"Plan has no field 'devise'; did you mean 'device'\?"),
        (json.dumps({**GOOD, "device": "gpu"}).encode(), r"device 'gpu' is not available"),
        (json.dumps({**GOOD, "runs": []}).encode(), r"a plan needs at least one run"),
        (json.dumps({**GOOD, "keep": "all"}).encode(), r"keep must be one of weights, state, forks, none, got 'all'"),
        (json.dumps({**GOOD, "stop_after_grokking": -1}).encode(), r"stop_after_grokking must be at least 0, got -1"),
        (json.dumps({**GOOD, "runs": [{"task": "add_mod"}]}).encode(), r"'add_mod' is not a task"),
        (json.dumps({**GOOD, "out": "\0"}).encode(), r"grokscope: .*null byte|could not be created"),
        (json.dumps({**GOOD, "out": "plan.json/x"}).encode(), r"could not be created: 'plan\.json' is a file"),
    ],
    ids=["missing", "bytes", "empty", "list", "field", "device", "no runs", "keep", "stop", "task", "NUL", "file"],
)
def test_a_plan_that_cannot_be_used_is_one_sentence_and_nothing_is_written(
    content: bytes | None,
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    path = Path("plan.json")
    if content is not None:
        path.write_bytes(content)
    assert main(["--spec", "plan.json"]) == BAD_INPUT
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.count("\n") == 1
    assert re.search(sentence, shown.err)
    assert [p for p in tmp_path.rglob("*") if p != tmp_path / path] == []


@pytest.mark.usefixtures("as_before")
@pytest.mark.parametrize(
    "words", [[], ["--store", "runs"], ["--plan", "x"], ["--spec", "a", "--store", "b", "--plan", "c"]]
)
def test_without_one_plan_it_says_how_it_is_used(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(words)
    assert stop.value.code == BAD_INPUT
    assert "a plan is named by --spec, or by --store and --plan" in capsys.readouterr().err


@pytest.mark.usefixtures("as_before")
def test_it_reads_the_plan_that_a_store_keeps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store, tiny = Store(tmp_path / "runs"), replace(FIRST, training=replace(FIRST.training, steps=4))
    name = keep_plan(Plan("somewhere else", (tiny,)), store)
    assert main(["--store", store.address, "--plan", name]) == 0
    assert store.is_finished(tiny)
    assert main(["--store", store.address, "--plan", "0123456789abcdef"]) == BAD_INPUT
    assert "the plan 'plans/0123456789abcdef.json' of" in capsys.readouterr().err
