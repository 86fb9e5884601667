"""Options that several commands share."""

import pytest

from grokscope.cli import COMMANDS
from grokscope.cli.commands import arguments_of
from grokscope.cli.options import ExecutorOptions, RunOptions, StorageOptions, given
from grokscope.errors import InputError
from grokscope.specs import Architecture, Initialization, RunSpec, Training


def test_only_what_was_given_counts() -> None:
    assert given(RunOptions()) == {}
    assert given(RunOptions(weight_decay=(0.0,), dropout=(0.0,))) == {"weight_decay": (0.0,), "dropout": (0.0,)}
    assert given(StorageOptions(stop_after_grokking=0)) == {"stop_after_grokking": 0}


def test_every_option_of_a_run_is_a_field_of_its_spec() -> None:
    parts = (RunSpec, Training, Architecture, Initialization)
    known = {name for part in parts for name in part.__dataclass_fields__}
    assert set(RunOptions.__dataclass_fields__) <= known


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"cluster": "auto"}, "--cluster has no effect with --executor local; use --executor ray"),
        ({"partition": "p", "executor": "ray"}, "--partition has no effect with --executor ray; use --executor slurm"),
        ({"runs_per_shard": 2}, "--runs-per-shard has no effect with --executor local; use --executor slurm or"),
        ({"memory_gib": 80.0}, "--memory-gib has no effect with --executor local"),
        ({"memory_gib": float("nan"), "executor": "ray"}, "--memory-gib must be a number of GiB above 0, got nan"),
    ],
)
def test_an_option_without_effect_is_rejected(options: dict, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        ExecutorOptions(**options).check()


def test_what_belongs_to_an_executor_is_accepted() -> None:
    ExecutorOptions().check()
    ExecutorOptions("ray", cluster="auto", runs_per_shard=2, memory_gib=80).check()
    ExecutorOptions("slurm", partition="gpu").check()
    assert ExecutorOptions("ray", memory_gib=0.5).memory == 2**29


def test_an_option_means_the_same_wherever_it_is_taken() -> None:
    """One declaration, or one name of the parameter; `--out` and `--json` are declared by many."""
    names: dict[str, set[str]] = {}
    for command in COMMANDS.values():
        for one in arguments_of(command):
            names.setdefault(one.written, set()).add(one.name)
    assert {written: found for written, found in names.items() if len(found) > 1} == {}
    assert len(COMMANDS) == 21


def test_a_folder_of_runs_comes_first_and_out_is_never_an_input() -> None:
    for name, command in COMMANDS.items():
        arguments = list(arguments_of(command))
        folders = [place for place, one in enumerate(arguments) if one.name == "folder"]
        assert folders in ([], [0]), name
        assert not (folders and name in ("fork", "resume") and any(one.written == "--out" for one in arguments))
