"""Every command's help has examples, and every example runs.

The commands are those of the registry, so a new one is covered without a word here. An example is a line
`Example: grokscope …` of the docstring. It runs in a folder of its own, where the folders of PREPARED that it mentions
have been made: an example that needs runs says `runs/first` or `runs/demo`, and finds three small ones, add_mod97_s0 to
s2, with states from which to fork at step 1000. A command that has `--dry-run` or `--plan-only` is run so; one that
cannot end by itself names the test that runs its example in RUN_ELSEWHERE.
"""

import inspect
import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from grokscope import cli
from grokscope.experiments import Store, run_all
from grokscope.specs import Architecture, Cadence, RunSpec, Training

ROOT = Path(__file__).parents[2]
SMALL = RunSpec(
    task="add_mod97",
    architecture=Architecture(layers=1, width=16, heads=2, mlp_width=32),
    training=Training(steps=1004, batch_size=32),
    checkpoints=Cadence(every=1000, at=(1000,)),
    measurements=Cadence(every=500),
)
SEEDS = (0, 1, 2)
WITHOUT_WORK = {"dry_run": ["--dry-run"], "plan_only": ["--plan-only", "plan.json"]}
RUN_ELSEWHERE: dict[str, str] = {}  # command → tests/…::test_…


def small_runs(folder: Path) -> None:
    torch.set_num_threads(1)
    run_all([SMALL.with_seed(seed) for seed in SEEDS], Store(folder), compiled=False)


PREPARED: dict[str, Callable[[Path], None]] = {"runs/first": small_runs, "runs/demo": small_runs}


def examples(command: str) -> list[str]:
    text = inspect.getdoc(cli.COMMANDS[command]) or ""
    return re.findall(r"^\s*Example: (grokscope .+)$", text, re.MULTILINE)


EXAMPLES = [(command, example) for command in cli.COMMANDS for example in examples(command)]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    made: dict[Callable[[Path], None], Path] = {}

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
    shown = " ".join(capsys.readouterr().out.split())
    assert all(" ".join(example.split()) in shown for example in examples(command))


@pytest.mark.parametrize(("command", "example"), EXAMPLES, ids=[example for _, example in EXAMPLES])
def test_every_example_runs(
    command: str,
    example: str,
    prepared: Callable[[str], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if command in RUN_ELSEWHERE:
        path, _, name = RUN_ELSEWHERE[command].partition("::")
        assert f"def {name}(" in (ROOT / path).read_text(encoding="utf-8")
        return
    monkeypatch.chdir(tmp_path)
    options = inspect.signature(cli.COMMANDS[command]).parameters
    words = shlex.split(example)[1:]
    idle = next((more for option, more in WITHOUT_WORK.items() if option in options and more[0] not in words), [])
    for name in PREPARED:
        if re.search(rf"(^|[\s'\"]){re.escape(name)}($|[\s/'\"])", example) and not idle:
            shutil.copytree(prepared(name), tmp_path / name)
    assert cli.run([*words, *idle]) == 0, capsys.readouterr().err
    assert capsys.readouterr().out.strip()
