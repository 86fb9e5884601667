"""Nobody waits for what they do not use, and everything exported is there once it is asked for."""

import ast
import importlib
import inspect
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import grokscope
from grokscope.cli import COMMANDS as ALL_COMMANDS
from grokscope.runs import RunOutcome, Store
from grokscope.specs import RunSpec

LAZY = ["grokscope", "grokscope.runs", "grokscope.jobs", "grokscope.tasks", "grokscope.studies"]
HEAVY = ["torch", "scipy", "numpy", "rich.console", "matplotlib", "grokscope.studies", "grokscope.jobs.runner"]
WHAT_IS_LOADED = f"print('loaded:', *[name for name in {HEAVY} if name in sys.modules])"
COMMAND = f"""
import sys
from grokscope.__main__ import main
try:
    main()
except SystemExit:
    pass
{WHAT_IS_LOADED}
"""


def fresh(program: str, *arguments: str) -> str:
    """What a program prints in an interpreter of its own."""
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One run that has ended and one that has not."""
    store = Store(tmp_path_factory.mktemp("runs"))
    ended, begun = (store.add(RunSpec().with_seed(seed)) for seed in (0, 1))
    ended.finish(RunOutcome("unstable_after", memorized=300, grokked=4000))
    begun.append({"step": 0})
    return store.path


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--version"], "grokscope 0."),
        (["list", "RUNS"], "2 runs: 1 grokked, then unstable; 1 unfinished"),
        (["list", "RUNS", "--json"], '"outcome": "grokked, then unstable"'),
        (["status", "RUNS"], "2 runs: 1 finished (1 grokked, then unstable), 1 begun, 0 pending"),
        (["--help"], "grokscope train add_mod97"),
        *(([name, "--help"], f"\n  grokscope {name}") for name in ALL_COMMANDS),
    ],
)
def test_what_trains_nothing_loads_nothing_that_trains(arguments, sentence: str, runs: Path) -> None:
    printed = fresh(COMMAND, *(word.replace("RUNS", str(runs)) for word in arguments))
    assert sentence in printed
    assert printed.splitlines()[-1].split() == ["loaded:"]


@pytest.mark.parametrize(
    ("arguments", "loaded"),
    [
        (["bogus"], []),
        (["sweep"], []),
        (["--bogus"], []),
        (["train", "add_mod97", "--sedes", "1"], []),
        (["reproduce", "--claims", "--remake"], []),
        (["train", "add_mod97"], []),
        (["train", "add_mod97", "--out", "x", "--partition", "p"], []),
        (["train", "add_mod97", "--out", "x", "--measures", "fsdd"], ["numpy"]),
        (["train", "add_mod97", "--out", "x", "--train-fraction", "0.0001"], ["numpy"]),
        (["train", "add_mod97", "--out", "x", "--weight-decay", "-1"], ["numpy"]),
        (["train", "ad_mod97", "--out", "x"], ["numpy"]),
        (["tasks", "ad_mod97"], ["numpy"]),
        (["train", "add_mod97", "--seeds", "x", "--out", "x"], ["numpy"]),
        (["reproduce", "synchronisation"], ["grokscope.studies"]),  # its names alone
        (["measure", "--measures", "fsdd"], []),
        (["import", "none.pt"], []),
        *(
            ([name, "nowhere"], [])
            for name in ("show", "list", "watch", "report", "serve", "status", "doctor", "resume")
        ),
        *(([name, "nowhere", "x"], []) for name in ("query", "measure", "export", "plot")),
        *(([name, "RUNS", "x"], []) for name in ("show", "measure", "export", "plot")),
        (["measure", "RUNS", "add_mod97_s0", "--measures", "fsdd"], []),
        (["fork", "RUNS", "x", "--at", "1"], []),
        (["report", "RUNS", "--detail", "x"], []),
    ],
)
def test_a_rejection_does_not_wait_for_torch(arguments: list[str], loaded: list[str], runs: Path) -> None:
    printed = fresh(COMMAND, *(word.replace("RUNS", str(runs)) for word in arguments))
    assert printed.splitlines()[-1].split() == ["loaded:", *loaded]


def test_what_is_loaded_is_reported() -> None:
    assert fresh(f"import sys, torch; {WHAT_IS_LOADED}").split() == ["loaded:", "torch", "numpy"]


def test_importing_the_package_and_opening_runs_loads_nothing_heavy(runs: Path) -> None:
    said = fresh(
        f"import sys, grokscope; grokscope.RunSpec(), grokscope.open(sys.argv[1]).table(); {WHAT_IS_LOADED}", str(runs)
    )
    assert said.split() == ["loaded:"]


@pytest.mark.parametrize("package", LAZY)
def test_every_export_is_there_for_whoever_asks_first(package: str) -> None:
    program = f"""
import importlib
package = importlib.import_module({package!r})
names = package.__all__
assert set(names) <= set(dir(package)), set(names) - set(dir(package))
exec("from {package} import *")
missing = [name for name in names if name not in globals() or globals()[name] is not getattr(package, name)]
print(len(names), missing)
"""
    assert fresh(program).split() == [str(len(importlib.import_module(package).__all__)), "[]"]


def seen_by_type_checkers(package: str) -> dict[str, str]:
    """The names that a package imports under TYPE_CHECKING, and the modules that they come from."""
    tree = ast.parse(inspect.getsource(importlib.import_module(package)))
    blocks = [node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    imports = [node for block in blocks for node in block.body if isinstance(node, ast.ImportFrom)]
    return {alias.name: str(node.module) for node in imports for alias in node.names}


@pytest.mark.parametrize("package", LAZY)
def test_a_type_checker_sees_what_is_there(package: str) -> None:
    seen = seen_by_type_checkers(package)
    module = importlib.import_module(package)
    eager = set(ast.literal_eval(fresh(f"import {package} as package; print(list(vars(package)))")))
    assert set(seen) == set(module.__all__) - eager
    for name, home in seen.items():
        assert getattr(module, name) is getattr(importlib.import_module(home), name)


@pytest.mark.parametrize("package", LAZY)
def test_no_export_has_the_name_of_a_module_which_would_take_its_place(package: str) -> None:
    module = importlib.import_module(package)
    assert not {below.name for below in pkgutil.iter_modules(module.__path__)} & set(module.__all__)


def test_the_rooms_are_attributes_as_if_they_had_been_imported() -> None:
    program = "import grokscope; print(grokscope.measures.fsd.__name__, grokscope.jobs.runner.run_all.__name__)"
    assert fresh(program).split() == ["fsd", "run_all"]


def test_what_is_not_there_is_said_as_python_says_it() -> None:
    with pytest.raises(AttributeError, match=r"^module 'grokscope' has no attribute 'Monitr'$"):
        _ = grokscope.Monitr
    with pytest.raises(ImportError, match="cannot import name 'Monitr' from 'grokscope'"):
        exec("from grokscope import Monitr")
    assert not hasattr(grokscope, "__wrapped__")
