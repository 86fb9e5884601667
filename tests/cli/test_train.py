import functools
import importlib
import inspect
import json
import re
import shlex
import signal
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

import grokscope
from grokscope import cli
from grokscope.cli import run
from grokscope.jobs import Progress, Stopped, run_all
from grokscope.jobs.worker import main
from grokscope.model import Twin
from grokscope.runs import Store, run_name
from grokscope.specs import Architecture, Cadence, Fork, Plan, RunSpec, Training

TRAIN = importlib.import_module("grokscope.cli.train")
PROGRESS = importlib.import_module("grokscope.cli.progress")
TINY = RunSpec(
    task="add_mod7",
    train_fraction=0.7,
    architecture=Architecture(layers=1, width=16, heads=2, mlp_width=32),
    training=Training(steps=8, batch_size=16, weight_decay=0.5),
    checkpoints=Cadence(every=4),
    measurements=Cadence(every=2),
)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every command runs in an empty folder with a spec in it."""
    monkeypatch.chdir(tmp_path)
    Path("tiny.json").write_text(TINY.to_json())
    return tmp_path


def trained_here(plan: Plan, report: Callable[[dict[str, Any]], None], stop_after: int = 10**9) -> bool:
    """What workers do, in this process."""
    lines: list[Progress] = []

    def say(progress: Progress) -> None:
        lines.append(progress)
        report(asdict(progress))

    try:
        run_all(
            plan.runs,
            Store(plan.out),
            device=plan.device,
            keep=plan.keep,
            report=say,
            should_stop=lambda: len(lines) >= stop_after,
            stop_after_grokking=plan.stop_after_grokking,
        )
        return True
    except Stopped:
        return False


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PROGRESS, "run_locally", trained_here)


def contents(path: Path) -> dict[str, object]:
    found: dict[str, object] = {}
    for file in sorted(file for file in path.rglob("*") if file.is_file() and file.parent.name != "plans"):
        found[str(file.relative_to(path))] = file.read_bytes()
        if file.name == "outcome.json":  # but for the commit, which may change while tests run
            found[str(file.relative_to(path))] = {**json.loads(file.read_bytes()), "provenance": None, "sha256": None}
    return found


def words(line: str) -> list[str]:
    return shlex.split(line)


def test_from_training_to_export_with_a_real_worker(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(words("train add_mod7 --seeds 3 --spec tiny.json --out runs/first")) == 0
    told = capsys.readouterr().out
    assert re.fullmatch(r"add_mod7_s3-[0-9a-f]{16}: .* at step 8, λ = 0\.5\n", told)

    assert run(words("list runs/first --json")) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["task"], row["seed"], row["weight_decay"]) == ("add_mod7", 3, 0.5)
    assert run(words("list runs/first")) == 0
    assert "add_mod7_s3" in capsys.readouterr().out

    assert run(words("show add_mod7_s3 --out runs/first --json")) == 0
    facts = json.loads(capsys.readouterr().out)
    assert RunSpec.from_dict(facts["spec"]) == TINY.with_seed(3)
    assert [row["step"] for row in facts["log"]] == [0, 2, 4, 6, 8]
    assert facts["outcome"]["layout"]["slots"] == 1

    assert run(words("export add_mod7_s3 --out runs/first --to safetensors")) == 0
    name = f"{run_name(TINY.with_seed(3))}-8.safetensors"
    assert capsys.readouterr().out == f"wrote {name}\n"
    module = Twin(TINY.architecture, 7)
    module.load_state_dict(safetensors.torch.load_file(here / name))
    tokens = torch.tensor(grokscope.named_task("add_mod7").tokens)
    assert module(tokens).equal(grokscope.open("runs/first")["add_mod7_s3"].module(8)(tokens))
    assert sorted(path.name for path in here.iterdir()) == [name, "runs", "tiny.json"], "the export stands alone"

    assert run(words("resume runs/first")) == 0
    assert capsys.readouterr().out == "every run in runs/first is finished\n"


@pytest.fixture
def as_before() -> Iterator[None]:
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)
    handlers, threads = [signal.getsignal(number) for number in numbers], torch.get_num_threads()
    yield
    for number, handler in zip(numbers, handlers, strict=True):
        signal.signal(number, handler)
    torch.set_num_threads(threads)


@pytest.mark.usefixtures("in_process", "as_before")
def test_a_plan_run_by_a_worker_gives_what_training_gives(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = "train add_mod7 --seeds 0:2 --weight-decay 1 2 --steps 6 --keep state --spec tiny.json --out"
    assert run([*words(arguments), "trained"]) == 0
    assert run([*words(arguments), "planned", "--plan-only", "plan.json"]) == 0
    assert "python -m grokscope.jobs.worker --spec plan.json" in capsys.readouterr().out
    assert not Path("planned").exists()
    assert main(["--spec", "plan.json"]) == 0
    assert contents(here / "trained") == contents(here / "planned")
    assert len(grokscope.open("trained")) == 4


def planned(arguments: str) -> Plan:
    assert run([*words(arguments), "--out", "runs", "--plan-only", "plan.json"]) == 0
    return Plan.from_json(Path("plan.json").read_text())


def test_without_a_spec_the_defaults_are_the_documented_ones() -> None:
    (only,) = planned("train add_mod97").runs
    assert only == RunSpec(training=Training(steps=8000))


def test_the_fields_of_a_spec_hold_where_options_are_left_alone() -> None:
    unusual = replace(
        TINY,
        seeds=grokscope.specs.Seeds(1, 2, 3),
        checkpoints=Cadence(every=None, at=(3,)),
        measurements=Cadence(every=None, per_decade=4),
        precision="bf16",
    )
    Path("tiny.json").write_text(unusual.to_json())
    assert planned("train add_mod7 --spec tiny.json").runs == (unusual,)


def test_options_go_before_the_spec() -> None:
    plan = planned(
        "train S3 --spec tiny.json --seeds 5 --weight-decay 2 3 --steps 20 --train-fraction 0.5 --measure-every 4 "
        "--checkpoint-every 10 --precision tf32 --keep none --stop-after-grokking 7 --device cpu"
    )
    first, second = plan.runs
    assert first == replace(
        TINY.with_seed(5),
        task="S3",
        train_fraction=0.5,
        training=replace(TINY.training, steps=20, weight_decay=2.0),
        checkpoints=Cadence(every=10),
        measurements=Cadence(every=4),
        precision="tf32",
    )
    assert second == replace(first, training=replace(first.training, weight_decay=3.0))
    assert (plan.keep, plan.stop_after_grokking, plan.device, plan.out) == ("none", 7, "cpu", "runs")


def test_a_table_is_pinned_by_its_content(here: Path) -> None:
    (here / "klein.json").write_text("[[0,1,2,3],[1,0,3,2],[2,3,0,1],[3,2,1,0]]")
    (only,) = planned("train table:klein.json --spec tiny.json").runs
    assert re.fullmatch(r"table:klein\.json#[0-9a-f]{16}", only.task)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("0", [0]), ("0,1,42", [0, 1, 42]), ("0:3", [0, 1, 2]), ("7:8", [7]), ("0:2,1,5", [0, 1, 5]), (" 3 ", [3])],
)
def test_seeds(text: str, expected: list[int]) -> None:
    assert TRAIN.seeds_of(text) == expected


# Interrupting, resuming, forking.


def test_interrupted_it_says_how_to_go_on_and_resuming_ends_where_a_straight_run_does(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = "train add_mod7 --seeds 0:2 --spec tiny.json --out"
    monkeypatch.setattr(PROGRESS, "run_locally", functools.partial(trained_here, stop_after=3))
    with pytest.raises(SystemExit) as stop:
        run([*words(command), "runs"])
    assert stop.value.code == 75
    shown = capsys.readouterr().out
    assert shown.splitlines()[-1] == "stopped; everything is stored: continue with `grokscope resume runs`"
    assert "unfinished at step 4" in shown
    assert "not begun" in shown
    assert run(words("list runs --json")) == 0
    assert [row["outcome"] for row in json.loads(capsys.readouterr().out)] == ["unfinished"] * 2
    assert run(words("show add_mod7_s1 --out runs")) == 0
    monkeypatch.setattr(PROGRESS, "run_locally", trained_here)
    assert run(words("resume runs")) == 0
    assert run([*words(command), "straight"]) == 0
    assert contents(here / "runs") == contents(here / "straight")
    before = contents(here / "runs")
    assert run([*words(command), "runs"]) == 0, "the same command again has nothing to do"
    assert contents(here / "runs") == before


@pytest.mark.usefixtures("in_process")
def test_forks_go_beside_their_parent(capsys: pytest.CaptureFixture[str]) -> None:
    run(words("train add_mod7 --spec tiny.json --out runs"))
    capsys.readouterr()
    assert run(words("fork add_mod7_s0 --at 5 --weight-decay 1 2 --steps 10 --out runs")) == 0
    assert capsys.readouterr().out.count("at step 10, λ = ") == 2
    specs = {row.spec.training.weight_decay: row.spec for row in grokscope.open("runs") if row.spec.fork}
    assert specs.keys() == {1.0, 2.0}
    assert specs[2.0] == replace(
        TINY, fork=Fork(TINY.content_hash, 5), training=replace(TINY.training, weight_decay=2.0, steps=10)
    )


@pytest.mark.usefixtures("in_process")
def test_a_fork_keeps_what_is_not_changed(here: Path) -> None:
    run(words("train add_mod7 --spec tiny.json --out runs"))
    assert run(words(f"fork {TINY.content_hash} --at 5 --out runs")) == 0
    assert run(words(f"fork {TINY.content_hash} --at 5 --reset-moments --out runs")) == 0
    kept, reset = (replace(TINY, fork=Fork(TINY.content_hash, 5, moments)) for moments in ("kept", "reset"))
    end = {spec: (here / "runs" / run_name(spec) / "state-00000008.safetensors") for spec in (TINY, kept, reset)}
    assert end[kept].read_bytes() == end[TINY].read_bytes()
    assert end[reset].read_bytes() != end[TINY].read_bytes()


@pytest.mark.usefixtures("in_process")
def test_ending_early_is_said_to_bias_leads(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(words("train add_mod7 --spec tiny.json --stop-after-grokking 0 --out runs")) == 0
    assert "leads computed from them are biased" in capsys.readouterr().err


@pytest.mark.usefixtures("in_process")
def test_a_run_that_another_process_writes_is_refused_and_its_owner_named(capsys: pytest.CaptureFixture[str]) -> None:
    with Store("runs").add(TINY).locked():
        assert run(words("train add_mod7 --spec tiny.json --out runs")) == 2
    last = capsys.readouterr().err.strip().splitlines()[-1]
    assert re.fullmatch(rf"grokscope: {run_name(TINY)} is being written by process [0-9]+ on \S+", last)


# What people see.


@pytest.mark.usefixtures("in_process")
def test_tables_show_every_run_and_measurement(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    run(words("train add_mod7 --seeds 0:2 --spec tiny.json --out runs"))
    capsys.readouterr()
    assert run(words("list runs")) == 0
    listed = capsys.readouterr().out
    for seed in (0, 1):
        assert run_name(TINY.with_seed(seed)) in listed
    assert run(words("show add_mod7_s1 --out runs")) == 0
    shown = capsys.readouterr().out
    log = grokscope.open("runs")["add_mod7_s1"].log()
    for step, norm in zip(log["step"], log["norm"], strict=True):
        assert re.search(rf"^ *{step} .* {norm:.3f} ", shown, re.MULTILINE)
    assert "weights at 3 steps: 0 … 8" in shown


def test_an_empty_folder_has_no_runs(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["list", str(here), "--json"]) == 0
    assert capsys.readouterr().out == "[]\n"


EXAMPLES = [
    line.strip().removeprefix("Example: ").split("   ")[0]
    for text in (cli.DESCRIPTION, *(inspect.getdoc(command) for command in cli.COMMANDS.values()))
    for line in text.splitlines()
    if line.strip().removeprefix("Example: ").startswith("grokscope ")
]


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_parses(example: str, monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[str] = []

    def recorded(name: str, command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def record(*arguments: object, **options: object) -> None:
            called.append(name)

        return record

    monkeypatch.setattr(cli, "COMMANDS", {name: recorded(name, command) for name, command in cli.COMMANDS.items()})
    assert run(words(example)[1:]) == 0
    assert called == ([] if "--version" in example else [words(example)[1]])


def test_every_command_has_an_example() -> None:
    assert {words(example)[1] for example in EXAMPLES} >= set(cli.COMMANDS)


# Bad input: one sentence, status 2, nothing written.


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("ad_mod7 --out runs", "did you mean 'add_mod7'"),
        ("add_mod7 --seeds a --out runs", "seeds must be numbers such as 0, 0,1,42 or 0:16, got 'a'"),
        ("add_mod7 --seeds -1 --out runs", "seeds must be numbers"),
        ("add_mod7 --seeds 1.5 --out runs", "seeds must be numbers"),
        ("add_mod7 --seeds '' --out runs", "seeds must be numbers"),
        ("add_mod7 --seeds ٣ --out runs", "seeds must be numbers"),
        ("add_mod7 --seeds 5:1 --out runs", "a range of seeds must be increasing and of at most 100,000, got '5:1'"),
        ("add_mod7 --seeds 3:3 --out runs", "a range of seeds must be increasing"),
        ("add_mod7 --seeds 0:999999999 --out runs", "of at most 100,000, got '0:999999999'"),
        ("add_mod7 --seeds 99999999999999999999 --out runs", "seeds must be numbers"),
        ("add_mod7 --measure-every 0 --out runs", "every must be at least 1, got 0"),
        ("add_mod7 --checkpoint-every -5 --out runs", "every must be at least 1, got -5"),
        ("add_mod7 --steps 0 --out runs", "steps must be at least 1, got 0"),
        ("add_mod7 --train-fraction 1.3 --out runs", "train_fraction must lie in (0, 1), got 1.3"),
        ("add_mod7 --train-fraction 0 --out runs", "train_fraction must lie in (0, 1), got 0.0"),
        ("add_mod7 --train-fraction 0.001 --out runs", "leaves no training pair"),
        ("add_mod7 --weight-decay nan --out runs", "weight_decay must be a finite number"),
        ("add_mod7 --weight-decay 1000 --out runs", "learning_rate × weight_decay must stay below 1, got 1.0"),
        ("add_mod7 --weight-decay -1 --out runs", "weight_decay must be at least 0, got -1.0"),
        ("add_mod7 --stop-after-grokking -1 --out runs", "stop_after_grokking must be at least 0, got -1"),
        ("add_mod7 --device cuda --out runs", "device cuda was asked for, and there is none; use cpu or auto"),
        ("add_mod7 --spec none.json --out runs", "the spec 'none.json' cannot be read"),
        ("add_mod7 --spec bad.json --out runs", "RunSpec has no field 'layers'; did you mean architecture.layers?"),
        ("add_mod7 --spec tiny.json --out bad.json", "the folder 'bad.json' could not be made: 'bad.json' is a file"),
        ("add_mod7 --out runs --plan-only bad.json", "'bad.json' exists already; nothing was overwritten"),
        ("add_mod7 --out runs --plan-only no/plan.json", "'no/plan.json' could not be written: No such file"),
        ("table:../../x.json --out runs", "the table '../../x.json' cannot be read: No such file or directory"),
    ],
)
def test_bad_input_to_train(
    arguments: str, sentence: str, here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    (here / "bad.json").write_text('{"layers": 3}')
    refused(["train", *words(arguments)], sentence, here, capsys)


def refused(arguments: list[str], sentence: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path: path.read_bytes() if path.is_file() else None for path in here.rglob("*")}
    capsys.readouterr()
    assert run(arguments) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("grokscope: ")
    assert shown.err.count("\n") == 1
    assert sentence in shown.err
    assert {path: path.read_bytes() if path.is_file() else None for path in here.rglob("*")} == before


@pytest.mark.usefixtures("in_process")
def test_bad_input_to_the_others(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(words("train add_mod7 --seeds 0:2 --spec tiny.json --out runs"))
    name = run_name(TINY)
    (here / f"{name}-8.safetensors").write_text("mine")
    (here / "manifest.json").write_text("mine")
    for line, sentence in [
        ("list rns", "there is no folder 'rns'; did you mean 'runs'?"),
        ("resume rns", "there is no folder 'rns'; did you mean 'runs'?"),
        ("list tiny.json", "there is no folder 'tiny.json'"),
        ("show add_mod7_s3", "there is no run 'add_mod7_s3' in 'runs'; did you mean 'add_mod7_s"),
        ("show add_mod7", "'add_mod7' names 2 runs, such as"),
        ("show x --out rns", "there is no folder 'rns'; did you mean 'runs'?"),
        ("export add_mod7_s0", f"'{name}-8.safetensors' exists already; nothing was overwritten"),
        ("export add_mod7_s0 --file tiny.json", "'tiny.json' exists already; nothing was overwritten"),
        ("export add_mod7_s0 --step 5", f"{name} has no weights at step 5; stored steps: '0, 4, 8'"),
        ("export add_mod7_s0 --file no/x.safetensors", "'no/x.safetensors' could not be written: No such file"),
        ("export add_mod7_s0 --file tiny.json/x", "'tiny.json/x' could not be written: Not a directory"),
        ("fork add_mod7_s3 --at 4 --out runs", "there is no run 'add_mod7_s3'"),
        ("fork add_mod7_s0 --at 8 --out runs", "the fork's step must lie before the last step 8, got 8"),
        ("fork add_mod7_s0 --at -1 --out runs", "the fork's step must be at least 0, got -1"),
        ("fork add_mod7_s0 --at 9 --steps 20 --out runs", f"{name} has states from step 0 to 8, got 9"),
        ("fork add_mod7_s0 --at 4 --steps 0 --out runs", "steps must be at least 1, got 0"),
        ("fork add_mod7_s0 --at 4 --weight-decay -1 --out runs", "weight_decay must be at least 0, got -1.0"),
    ]:
        refused(words(line), sentence, here, capsys)


@pytest.mark.usefixtures("in_process")
def test_an_export_touches_no_other_file(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(words("train add_mod7 --spec tiny.json --out runs"))
    (here / "manifest.json").write_text('{"name": "my web page"}')
    assert run(words("export add_mod7_s0 --step 4 --file weights.safetensors")) == 0
    assert (here / "manifest.json").read_text() == '{"name": "my web page"}'
    assert (here / "weights.safetensors").exists()


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("name", ["spec.json", "outcome.json", "weights-00000008.safetensors"])
def test_a_damaged_file_is_named(name: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(words("train add_mod7 --spec tiny.json --out runs"))
    path = here / "runs" / run_name(TINY) / name
    path.write_bytes(path.read_bytes()[:-10])
    refused(words("export add_mod7_s0") if "weights" in name else words("list runs"), name, here, capsys)


@pytest.mark.parametrize(
    "arguments",
    [
        "train",
        "train add_mod7",
        "train add_mod7 --out runs --device banana",
        "train add_mod7 --out runs --steps many",
        "train add_mod7 --out runs --keep all",
        "fork x --out runs",
        "export x --to pickle",
    ],
)
def test_words_that_make_no_command_exit_with_status_2(arguments: str, here: Path) -> None:
    with pytest.raises(SystemExit) as stop:
        run(words(arguments))
    assert stop.value.code == 2
    assert sorted(path.name for path in here.iterdir()) == ["tiny.json"]


def test_runs_that_had_not_begun_when_it_stopped_are_resumed_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(PROGRESS, "run_locally", functools.partial(trained_here, stop_after=2))
    with pytest.raises(SystemExit):
        run(words("train add_mod7 --seeds 0:3 --spec tiny.json --out runs"))
    assert [len(one.folder.log()) > 0 for one in grokscope.open("runs")].count(True) == 1
    monkeypatch.setattr(PROGRESS, "run_locally", trained_here)
    assert run(words("resume runs")) == 0
    assert [one.folder.outcome is not None for one in grokscope.open("runs")] == [True] * 3


def test_a_fork_point_keeps_the_full_state(in_process: None) -> None:
    assert run(words("train add_mod7 --seeds 3 --spec tiny.json --out runs --fork-points 6 2")) == 0
    one = grokscope.open("runs")["add_mod7_s3"]
    assert one.spec.checkpoints.at == (2, 6)
    assert {2, 6} <= set(one.folder.checkpoints("state"))
