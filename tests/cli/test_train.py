"""`grokscope train`: from the command line to stored runs."""

import functools
import json
import re
import signal
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import safetensors.torch
import torch
from small_commands import EXECUTORS, TINY, contents, rejected, trained_here, words

import grokscope
from grokscope.cli import run
from grokscope.cli.grid import read_specs
from grokscope.jobs.worker import main
from grokscope.model import ReferenceModule, Sizes
from grokscope.runs import Store, run_name
from grokscope.specs import Cadence, Plan, RunSpec, Seeds, Training
from grokscope.steering import FAST

pytestmark = pytest.mark.usefixtures("here")


def test_from_training_to_export_with_a_real_worker(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(words("train add_mod7 --seeds 3 --spec tiny.json --out runs/first")) == 0
    sentence = capsys.readouterr().out
    assert re.fullmatch(r"add_mod7_s3-[0-9a-f]{16}: .* at step 8, λ = 0\.5\n", sentence)

    assert run(words("list runs/first --json")) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["task"], row["seed"], row["weight_decay"]) == ("add_mod7", 3, 0.5)
    assert run(words("list runs/first")) == 0
    assert "add_mod7_s3" in capsys.readouterr().out

    assert run(words("show runs/first add_mod7_s3 --json")) == 0
    facts = json.loads(capsys.readouterr().out)
    assert RunSpec.from_dict(facts["spec"]) == TINY.with_seed(3)
    assert [row["step"] for row in facts["log"]] == [0, 2, 4, 6, 8]
    assert facts["outcome"]["layout"]["slots"] == 1

    assert run(words("export runs/first add_mod7_s3 --format safetensors")) == 0
    name = f"{run_name(TINY.with_seed(3))}-8.safetensors"
    assert capsys.readouterr().out == f"wrote {name}\n"
    module = ReferenceModule(TINY.architecture, Sizes(8, 7))
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
def test_a_plan_run_by_a_worker_gives_what_training_gives(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{EXECUTORS}.run_locally", functools.partial(trained_here, compiled=None))
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


def test_the_fields_of_a_spec_hold_where_options_are_left_out() -> None:
    unusual = replace(
        TINY,
        seeds=Seeds(1, 2, 3),
        checkpoints=Cadence(every=None, at=(3,)),
        measurements=Cadence(every=None, per_decade=4),
        precision="bf16",
    )
    Path("tiny.json").write_text(unusual.to_json())
    assert planned("train add_mod7 --spec tiny.json").runs == (unusual,)
    Path("plan.json").unlink()
    assert planned("train --spec tiny.json").runs == (unusual,), "its task too"


DEFAULTS = {
    "--seeds 0": lambda spec: spec.seeds == Seeds(0, 0, 0),
    "--steps 8000": lambda spec: spec.training.steps == 8000,
    "--weight-decay 1": lambda spec: spec.training.weight_decay == 1.0,
    "--learning-rate 0.001": lambda spec: spec.training.learning_rate == 1e-3,
    "--batch-size 512": lambda spec: spec.training.batch_size == 512,
    "--dropout 0": lambda spec: spec.training.dropout == 0,
    "--warmup-steps 0": lambda spec: spec.training.warmup_steps == 0,
    "--gradient plain": lambda spec: spec.training.gradient == "plain",
    "--train-fraction 0.3": lambda spec: spec.train_fraction == 0.3,
    "--layers 2": lambda spec: spec.architecture.layers == 2,
    "--width 128": lambda spec: spec.architecture.width == 128,
    "--heads 4": lambda spec: spec.architecture.heads == 4,
    "--mlp-width 512": lambda spec: spec.architecture.mlp_width == 512,
    "--precision float32": lambda spec: spec.precision == "float32",
    "--evaluate-every 100": lambda spec: spec.measurements.every == 100,
    "--checkpoint-every 500": lambda spec: spec.checkpoints.every == 500,
}


@pytest.mark.parametrize("option", DEFAULTS)
def test_an_option_equal_to_its_default_overrides_the_spec(option: str) -> None:
    unusual = replace(
        TINY,
        seeds=Seeds(1, 2, 3),
        training=replace(TINY.training, learning_rate=0.01, dropout=0.1, warmup_steps=2, gradient="orthogonal"),
        precision="bf16",
    )
    assert not DEFAULTS[option](unusual)
    Path("unusual.json").write_text(unusual.to_json())
    (only,) = planned(f"train --spec unusual.json {option}").runs
    assert DEFAULTS[option](only)


def test_options_override_the_spec() -> None:
    plan = planned(
        "train S3 --spec tiny.json --seeds 5 --weight-decay 2 3 --steps 20 --train-fraction 0.5 --evaluate-every 4 "
        "--checkpoint-every 10 --precision tf32 --keep none --stop-after-grokking 7 --device cpu --measures fsd rank"
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
    assert plan.measures == ("fsd", "rank")


@pytest.mark.usefixtures("in_process")
def test_a_grid_is_every_combination(capsys: pytest.CaptureFixture[str]) -> None:
    grid = "train add_mod7 mult_mod7 --seeds 0:2 --weight-decay 0.5 1 --learning-rate 0.001 0.01 --spec tiny.json"
    assert run(words(f"{grid} --out runs")) == 0
    found = [folder.spec for folder in Store("runs")]
    assert len(found) == 2 * 2 * 2 * 2
    assert len({(s.task, s.seeds.split, s.training.weight_decay, s.training.learning_rate) for s in found}) == 16
    assert {spec.architecture for spec in found} == {TINY.architecture}
    capsys.readouterr()
    assert run(words("status runs --json")) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["planned"], facts["finished"], facts["begun"], facts["waiting"]) == (16, 16, 0, 0)


@pytest.mark.usefixtures("in_process")
def test_a_file_of_specs_is_trained_as_it_is_and_options_override_each() -> None:
    Path("runs.jsonl").write_text("\n".join([TINY.to_json(), "", TINY.with_seed(9).to_json(), TINY.to_json()]))
    assert run(words("train --spec runs.jsonl --out runs")) == 0
    assert {folder.name for folder in Store("runs")} == {run_name(TINY), run_name(TINY.with_seed(9))}
    plan = planned("train --spec runs.jsonl --steps 8 6")
    assert [(spec.training.steps, spec.seeds.split) for spec in plan.runs] == [(8, 0), (6, 0), (8, 9), (6, 9)]


def test_a_spec_that_is_written_is_the_run_that_would_be_trained(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(words("train S3 --seeds 4 --weight-decay 2 --width 64 --write-spec mine.json")) == 0
    assert "grokscope train --spec mine.json --out DIR" in capsys.readouterr().out
    assert '\n  "width": 64' in Path("mine.json").read_text(), "in lines, to be edited"
    assert planned("train --spec mine.json").runs == planned_again("train S3 --seeds 4 --weight-decay 2 --width 64")
    assert run(words("train add_mod7 S3 --seeds 0:2 --write-spec mine.jsonl")) == 0
    assert len(read_specs(Path("mine.jsonl"))) == 4


def planned_again(arguments: str) -> tuple[RunSpec, ...]:
    Path("plan.json").unlink()
    return planned(arguments).runs


def test_lists_are_separated_by_spaces_or_commas() -> None:
    spaces = planned("train add_mod7 S3 --seeds 0 1 4:6 --weight-decay 1 2 --measures fsd rank --spec tiny.json")
    Path("plan.json").unlink()
    commas = planned("train add_mod7,S3 --seeds 0,1,4:6 --weight-decay=1,2 --measures fsd,rank --spec tiny.json")
    assert spaces == commas
    assert (len(spaces.runs), spaces.measures) == (16, ("fsd", "rank"))


def test_a_table_is_pinned_by_its_content(here: Path) -> None:
    (here / "klein.json").write_text("[[0,1,2,3],[1,0,3,2],[2,3,0,1],[3,2,1,0]]")
    (only,) = planned("train table:klein.json --spec tiny.json").runs
    assert re.fullmatch(r"table:klein\.json#[0-9a-f]{16}", only.task)


@pytest.mark.usefixtures("in_process")
def test_a_fork_point_keeps_the_full_state() -> None:
    assert run(words("train add_mod7 --seeds 3 --spec tiny.json --out runs --fork-points 6 2")) == 0
    one = grokscope.open("runs")["add_mod7_s3"]
    assert one.spec.checkpoints.at == (2, 6)
    assert {2, 6} <= set(one.folder.checkpoints("state"))


@pytest.mark.usefixtures("in_process")
def test_training_does_not_begin_with_a_warning_about_leads(capsys: pytest.CaptureFixture[str]) -> None:
    """What ending early means for them is said by `show`, where they are."""
    assert run(words("train add_mod7 --spec tiny.json --stop-after-grokking 0 --out runs")) == 0
    shown = capsys.readouterr()
    assert "lead" not in shown.out + shown.err
    assert shown.err.splitlines()[-1].startswith("1 of 1 run finished in 0:")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("--out runs", "name a task, as `grokscope tasks` lists them, or a file with --spec"),
        ("add_mod7 --out runs --device banana", "--device takes one of auto, cpu, cuda, mps, got 'banana'"),
        ("add_mod7 --out runs --device cdua", "got 'cdua'; did you mean 'cuda'?"),
        ("add_mod7 --out runs --steps many", "--steps takes a whole number, got 'many'"),
        ("add_mod7 --out runs --steps 10,1.5", "--steps takes a whole number, got '1.5'"),
        ("add_mod7 --out runs --weight-decay=1,x", "--weight-decay takes a number, got 'x'"),
        ("add_mod7 --out runs --keep all", "--keep takes one of weights, state, forks, none, got 'all'"),
        ("add_mod7", "name the folder for the runs with --out"),
        ("add_mod7 --write-spec x.txt", "a spec is written as .json, or several as .jsonl, got 'x.txt'"),
        ("add_mod7 --seeds 0:2 --write-spec x.json", "'x.json' would hold one run, and these are 2; write them to a"),
        ("add_mod7 --write-spec tiny.json", "'tiny.json' exists already; nothing was overwritten"),
        ("add_mod7 --write-spec x.json --dry-run", "--write-spec trains nothing: leave out --plan-only, --dry-run"),
        ("ad_mod7 --out runs", "did you mean 'add_mod7'"),
        ("add_mod7 --seeds a --out runs", "seeds must be whole numbers from 0 on, such as 0, 0,1,42 or 0:16, got 'a'"),
        ("add_mod7 --seeds -1 --out runs", "seeds must be whole numbers from 0 on"),
        ("add_mod7 --seeds 1.5 --out runs", "seeds must be whole numbers from 0 on"),
        ("add_mod7 --seeds '' --out runs", "seeds must be whole numbers from 0 on"),
        ("add_mod7 --seeds ٣ --out runs", "seeds must be whole numbers from 0 on"),
        ("add_mod7 --seeds 5:1 --out runs", "a range of seeds must be increasing and of at most 100,000, got '5:1'"),
        ("add_mod7 --seeds 3:3 --out runs", "a range of seeds must be increasing"),
        ("add_mod7 --seeds 0:999999999 --out runs", "of at most 100,000, got '0:999999999'"),
        ("add_mod7 --seeds 99999999999999999999 --out runs", "seeds must be whole numbers from 0 on"),
        ("add_mod7 --evaluate-every 0 --out runs", "--evaluate-every must be at least 1, got 0"),
        ("add_mod7 --checkpoint-every -5 --out runs", "--checkpoint-every must be at least 1, got -5"),
        ("add_mod7 --keep none --fork-points 100 --out runs", "--keep none stores no states: leave out --fork-points"),
        (
            "add_mod7 --fork-points 9000 --out runs",
            "listed steps and fork points must not pass the last step 8000, got",
        ),
        ("add_mod7 --retries -1 --out runs", "--retries must be at least 0, got -1"),
        ("add_mod7 --executor slurm --out runs", "--executor slurm needs submitit; install it with: pip install"),
        (
            "add_mod7 --executor ray --out runs",
            "--executor ray needs ray; install it with: pip install 'grokscope[ray]'",
        ),
        ("add_mod7 --steps 0 --out runs", "steps must be at least 1, got 0"),
        ("add_mod7 --train-fraction 1.3 --out runs", "train_fraction must lie in (0, 1), got 1.3"),
        ("add_mod7 --train-fraction 0 --out runs", "train_fraction must lie in (0, 1), got 0.0"),
        ("add_mod7 --train-fraction 0.001 --out runs", "leaves no training row"),
        ("add_mod7 --weight-decay nan --out runs", "weight_decay must be a finite number"),
        ("add_mod7 --weight-decay 1000 --out runs", "learning_rate × weight_decay must stay below 1, got 1.0"),
        ("add_mod7 --weight-decay -1 --out runs", "weight_decay must be at least 0, got -1.0"),
        ("add_mod7 --weight-decay --out runs", "--weight-decay needs a value"),
        ("add_mod7 --weight-decay 1 --weight-decay 2 --out runs", "--weight-decay was given twice"),
        ("add_mod7 --width 64 --heads 3 --out runs", "heads must divide the width 64, got 3"),
        ("add_mod7 --stop-after-grokking -1 --out runs", "stop_after_grokking must be at least 0, got -1"),
        ("add_mod7 --device cuda --out runs", "this machine has no device cuda; use cpu or auto"),
        ("add_mod7 --measures fsdd --out runs", "there is no measure 'fsdd'"),
        ("add_mod7 --spec none.json --out runs", "the spec 'none.json' cannot be read"),
        ("add_mod7 --spec none.jsonl --out runs", "the spec 'none.jsonl' cannot be read"),
        ("add_mod7 --spec bad.json --out runs", "RunSpec has no field 'layers'; did you mean architecture.layers?"),
        (
            "add_mod7 --spec tiny.json --out bad.json",
            "the folder 'bad.json' could not be created: 'bad.json' is a file",
        ),
        ("add_mod7 --out runs --plan-only bad.json", "'bad.json' exists already; nothing was overwritten"),
        ("add_mod7 --out runs --plan-only no/plan.json", "'no/plan.json' could not be written: No such file"),
        ("add_mod7 --out runs --plan-only p.json --dry-run", "--dry-run writes nothing: leave out --plan-only"),
        ("add_mod7 --out runs --plan-only p.json --track wandb", "--plan-only trains nothing"),
        ("add_mod7 --out runs --dry-run --track wandb", "--dry-run trains nothing: leave out --track"),
        ("add_mod7 --out runs --partition gpu", "--partition has no effect with --executor local"),
        ("add_mod7 --out runs --cluster auto", "--cluster has no effect with --executor local; use --executor ray"),
        ("add_mod7 --executor ray --runs-per-shard 0 --dry-run --out runs", "at least one run, got"),
        (
            "add_mod7 --executor ray --memory-gib nan --dry-run --out runs",
            "--memory-gib must be a number of GiB above 0",
        ),
        ("add_mod7 --out file:///tmp/none --track tensorboard", "--track needs a local folder"),
        ("add_mod7 --out nowhere://x", "the address 'nowhere://x' cannot be used"),
        ("table:../../x.json --out runs", "the table '../../x.json' cannot be read: No such file or directory"),
    ],
)
def test_bad_input(
    arguments: str, sentence: str, here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(f"{EXECUTORS}.find_spec", lambda library: None)
    (here / "bad.json").write_text('{"layers": 3}')
    rejected(["train", *words(arguments)], sentence, here, capsys)


@pytest.mark.parametrize("word", ["wandb", "tensorboard", "trackio"])
def test_a_tracker_that_is_not_installed_is_rejected_before_anything_is_trained(
    word: str, here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / word).mkdir()
    monkeypatch.setattr(sys, "path", [str(here)])
    sentence = f"the tracker {word} needs the package {word}; install it with: pip install 'grokscope[trackers]'"
    rejected(words(f"train add_mod7 --out runs --track {word}"), sentence, here, capsys)


@pytest.mark.parametrize("arguments", ["fork x --at 1", "fork x y"])
def test_words_that_make_no_command_exit_with_status_2(
    arguments: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rejected(words(arguments), "a command such as `grokscope fork DIR RUN --at ...` is expected, got", here, capsys)


def test_a_recipe_changes_the_optimiser_and_what_lets_go_and_options_override_it() -> None:
    (fast,) = planned("train add_mod7 --recipe fast").runs
    assert fast == FAST.apply(RunSpec("add_mod7", training=Training(steps=8000)))
    assert fast.release is not None
    assert (fast.training.optimizer, fast.training.weight_decay, fast.release.gentle) == ("muon", 5.0, None)
    shallow, deep = planned_again("train parity_n8_k1 --kind mlp --layers 1 2 --recipe fast")
    assert (shallow.release, deep.release) == (FAST.without_muon, FAST.release), "one layer has no matrix for Muon"
    again = planned_again("train add_mod7 --recipe fast --weight-decay 3 --optimizer adamw --seeds 0:2")
    assert {(run.training.optimizer, run.training.weight_decay) for run in again} == {("adamw", 3.0)}
    assert {run.release for run in again} == {FAST.without_muon}


def test_the_fast_recipe_trains_lets_go_and_says_when_and_why(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = (
        "train parity_n8_k1 --kind mlp --layers 1 --mlp-width 32 --train-fraction 0.8 --recipe fast --steps 150 "
        "--out runs/fast"
    )
    assert run(words(command)) == 0
    assert re.search(r"grokked at step \d+ .*let go to 1 at step \d+ because it generalised", capsys.readouterr().out)
    assert run(words("show runs/fast parity_n8_k1_s0 --json")) == 0
    facts = json.loads(capsys.readouterr().out)
    grokked = next(row["step"] for row in facts["log"] if row["validation_accuracy"] >= 0.95)
    learnt = next(row["step"] for row in facts["log"] if row["train_accuracy"] >= 0.99 or row["train_loss"] <= 0.1)
    assert [row["weight_decay"] for row in facts["log"]] == [
        5.0 if not row["step"] or learnt < row["step"] <= grokked else 1.0 for row in facts["log"]
    ]
    first, *_, last = facts["outcome"]["control"]["changes"]
    assert first == {"step": 0, "weight_decay": 1.0, "reason": "gentle"}
    assert last == {"step": grokked, "weight_decay": 1.0, "reason": "generalization"}
