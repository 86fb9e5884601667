"""Every command's help ends with examples, and every example runs.

The commands are those of the registry, so a new one is covered without a word here. An example is a line under
`Examples:` in the docstring. It runs in a folder of its own, where the folders of PREPARED that it mentions exist: an
example that needs runs says `runs/first` or `runs/demo`, and finds three small ones, add_mod97_s0 to s2, of which the
first has a state to fork from at step 1000. `train` is run with `--plan-only`; an example that cannot end by itself, or
needs a network, names the test that runs it in RUN_ELSEWHERE.
"""

import inspect
import json
import re
import shlex
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from grokscope import cli
from grokscope.cli.commands import examples_of
from grokscope.jobs import run_all
from grokscope.runs import Store
from grokscope.runs.packing import save_records
from grokscope.specs import Architecture, Cadence, Membership, Plan, RunSpec, Training
from grokscope.studies.sources import stored_records

ROOT = Path(__file__).parents[2]
SMALL = RunSpec(
    task="add_mod97",
    architecture=Architecture(layers=1, width=8, heads=1, mlp_width=8),
    training=Training(steps=1004, batch_size=8),
    checkpoints=Cadence(every=1000, at=(1000,)),
    measurements=Cadence(every=500),
)
RUN_ELSEWHERE = {  # beginning of an example → tests/…::test_…
    "grokscope serve": "tests/browser/test_live.py::test_evaluations_appear_and_a_rewound_log_is_followed",
    "grokscope import s3://": "tests/faults/test_remote.py::test_the_same_sweep_gives_the_same_bytes",
}


def small_runs(folder: Path) -> None:
    """Runs that were made for the paper's base experiment."""
    torch.set_num_threads(1)
    short = replace(SMALL, training=replace(SMALL.training, steps=8), checkpoints=Cadence(every=4))
    runs = [SMALL, short.with_seed(1), short.with_seed(2)]
    places = {spec: (Membership("synchronization", "base", f"add_mod97_s{seed}"),) for seed, spec in enumerate(runs)}
    run_all(runs, Store(folder), compiled=False, made_for=places)


def packed_runs(folder: Path) -> None:
    """Records as `reproduce` leaves them."""
    small_runs(folder / "runs")
    save_records(folder / "small.records.gz", stored_records(Store(folder / "runs")))
    claim = {"name": "a-claim", "statement": "It is one.", "reported": "1", "value": "2", "n": 3}
    (folder / "claims.json").write_text(json.dumps([claim | {"verdict": "reproduced"}]))
    (folder / "provenance.json").write_text(json.dumps({"rules": "0" * 64}))


def published_weights(path: Path) -> None:
    """A file as others publish them."""
    path.rmdir()
    torch.save({"embed.weight": torch.ones(2, 2)}, path)


def logged_history(path: Path) -> None:
    """A log of another program, with a column whose name does not tell what it is."""
    path.rmdir()
    path.write_text("step,train_acc,val_acc,probe\n0,0.01,0.01,0.01\n500,1,0.02,0.02\n1000,1,0.97,0.97\n")


def own_forecaster(path: Path) -> None:
    """A forecaster in a file, that knows nothing."""
    path.rmdir()
    path.write_text("def predict(runs, horizon):\n    return [(0.5, {0.5: 1000}) for _ in runs]\n")


def runs_that_grok(folder: Path) -> None:
    """Packed records with evaluations that were made up, so that there is something to forecast."""
    from planted_ends import planted_log

    from grokscope.runs import RunOutcome, RunRecord

    trainings = [replace(RunSpec().training, weight_decay=decay) for decay in (1.0, 1.5, 2.0, 3.0)]
    specs = [replace(RunSpec(), training=one).with_seed(seed) for one in trainings for seed in range(3)]
    times = [2000 + 100 * place for place in range(len(specs))]
    logs = [planted_log(time, noise=time) for time in times]
    outcomes = [RunOutcome("grokked", memorized=300, grokked=time) for time in times]
    save_records(
        folder / "made-up.records.gz", [RunRecord(*one, {}) for one in zip(specs, outcomes, logs, strict=True)]
    )


PREPARED: dict[str, Callable[[Path], object]] = {
    **dict.fromkeys(("runs/first", "runs/demo", "runs/decays", "runs/paper"), small_runs),
    "results/synchronization": packed_runs,
    "examples/own_study": lambda folder: shutil.copytree(ROOT / "examples" / "own_study", folder, dirs_exist_ok=True),
    "grokked.pt": published_weights,
    "history.csv": logged_history,
    "mine.py": own_forecaster,
    "results/bakeoff": runs_that_grok,
}


def examples(command: str) -> list[str]:
    return examples_of(inspect.getdoc(cli.COMMANDS[command]) or "")


EXAMPLES = [(command, example) for command in cli.COMMANDS for example in examples(command)]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    made: dict[Callable[[Path], object], Path] = {}

    def folder(name: str) -> Path:
        make = PREPARED[name]
        if make not in made:
            made[make] = tmp_path_factory.mktemp("prepared")
            make(made[make])
        return made[make]

    return folder


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_every_command_has_an_example_of_itself_that_its_help_shows(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert examples(command)
    assert all(shlex.split(example)[1] == command for example in examples(command))
    monkeypatch.setenv("COLUMNS", "400")
    with pytest.raises(SystemExit) as stop:
        cli.run([command, "--help"])
    assert stop.value.code == 0
    shown = capsys.readouterr().out
    assert shown.endswith("\n".join(["\nExamples:", *(f"  {example}" for example in examples(command)), ""]))


@pytest.mark.parametrize(("command", "example"), EXAMPLES, ids=[example for _, example in EXAMPLES])
def test_every_example_runs(
    command: str,
    example: str,
    prepared: Callable[[str], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for beginning, address in RUN_ELSEWHERE.items():
        if example.startswith(beginning):
            path, _, name = address.partition("::")
            assert f"def {name}(" in (ROOT / path).read_text(encoding="utf-8")
            return
    monkeypatch.chdir(tmp_path)
    words = shlex.split(example)[1:]
    is_idle = command != "train" or {"--dry-run", "--write-spec"} & {*words}
    idle = [] if is_idle else ["--plan-only", "plan.json"]
    for name in PREPARED:
        if re.search(rf"(^|[\s'\"]){re.escape(name)}($|[\s/'\"])", example) and not idle:
            (shutil.copytree if prepared(name).is_dir() else shutil.copy)(prepared(name), tmp_path / name)
    assert cli.run([*words, *idle]) == 0, capsys.readouterr().err
    assert capsys.readouterr().out.strip()


@pytest.mark.parametrize(
    ("target", "folder", "name", "step"),
    [("demo", "runs/demo", "add_mod31_s42", "200"), ("demo-full", "runs/full", "add_mod97_s42", "1000")],
)
def test_the_demo_is_made_of_commands_that_run(
    target: str,
    folder: str,
    name: str,
    step: str,
    prepared: Callable[[str], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    small = re.search(r"^SMALL := (.*)\\\n(.*)\n", makefile, re.MULTILINE)
    recipe = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", makefile, re.MULTILINE)
    assert recipe is not None
    assert small is not None
    text = recipe[1].replace("$(SMALL)", f"{small[1]} {small[2]}")
    lines = [shlex.split(line)[1:] for line in text.splitlines() if "/grokscope" in line]
    assert [words[0] for words in lines] == ["train", "fork", "list", "show", "report"]
    monkeypatch.chdir(tmp_path)
    assert cli.run([*lines[0], "--plan-only", "plan.json"]) == 0
    plan = Plan.from_json(Path("plan.json").read_text())
    assert [spec.seeds.data_order for spec in plan.runs] == [42, 0, 1]
    assert all(int(step) in spec.checkpoints.at for spec in plan.runs), (
        "so that forking need not train up to there again"
    )
    shutil.copytree(prepared("runs/demo"), folder)
    capsys.readouterr()
    for words in lines[1:]:  # on the small runs, whose tasks and seeds are others
        found = {name: "add_mod97_s0", step: "1000"}
        assert cli.run([found.get(word, word) for word in words]) == 0
    said = capsys.readouterr().out
    assert "Forks of add_mod97_s0 at step 1,000:" in said
    assert f"wrote {folder}/report.html" in said
    assert f"open {(tmp_path / folder).as_uri()}/report.html" in said
