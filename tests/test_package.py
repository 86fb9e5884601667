import importlib
import inspect
import pkgutil
import subprocess
import sys
import textwrap

import pytest
from torch.autograd import Function

import grokscope

MODULES = [m.name for m in pkgutil.walk_packages(grokscope.__path__, "grokscope.") if not m.name.endswith("__main__")]
BLOCKER = """
    import importlib.abc, sys

    ALLOWED = {"torch", "numpy", "safetensors", "grokscope"}

    class Blocker(importlib.abc.MetaPathFinder):
        def find_spec(self, name, path, target=None):
            root = name.partition(".")[0]
            importer = sys._getframe(1)
            while importer and "importlib" in importer.f_code.co_filename:
                importer = importer.f_back
            asked_by_us = importer and "grokscope" in importer.f_globals.get("__name__", "")
            if asked_by_us and root not in ALLOWED | set(sys.stdlib_module_names):
                raise ModuleNotFoundError(f"blocked: {name}", name=root)

    sys.meta_path.insert(0, Blocker())
"""


def run_blocked(code: str) -> subprocess.CompletedProcess[str]:
    program = textwrap.dedent(BLOCKER) + textwrap.dedent(code)
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)


def test_the_core_imports_with_everything_else_blocked() -> None:
    done = run_blocked("""
        import grokscope
        from grokscope import *
        from grokscope.runs import *
        from grokscope.jobs import *
        from grokscope.shapes import Float
        assert Float[int, "n"] is int, "the stand-ins must be in use"
        assert "jaxtyping" not in sys.modules
        for heavy in ("tyro", "rich", "scipy", "matplotlib"):
            assert heavy not in sys.modules, heavy
        print(grokscope.named_task("S4").basis().modes.dimensions.sum())
    """)
    assert done.stdout.strip() == "23", done.stderr


def test_the_blocker_blocks() -> None:
    done = run_blocked("import grokscope.cli")
    assert "blocked: tyro" in done.stderr


def test_the_command_line_without_its_libraries_says_what_to_install() -> None:
    done = run_blocked("from grokscope.__main__ import main; sys.exit(main())")
    assert done.returncode == 2
    assert done.stderr.strip() == "grokscope: the command line needs tyro; install it with: pip install grokscope"


def test_a_command_without_its_libraries_says_what_to_install() -> None:
    done = run_blocked("""
        from grokscope.__main__ import main
        ALLOWED.add("tyro")
        sys.argv[1:] = ["tasks", "S5", "--group"]
        sys.exit(main())
    """)
    assert done.returncode == 2
    assert done.stderr.strip() == "grokscope: the command line needs rich; install it with: pip install grokscope"


@pytest.mark.parametrize("name", MODULES)
def test_public_names_are_listed_and_documented(name: str) -> None:
    module = importlib.import_module(name)
    assert inspect.getdoc(module)
    for public in module.__all__:
        thing = getattr(module, public)
        if inspect.isfunction(thing) or inspect.isclass(thing):
            assert inspect.getdoc(thing), f"{name}.{public}"
        if inspect.isclass(thing):
            # What forward and backward of a link compute is what its class says.
            of_links = ("forward", "backward") if issubclass(thing, Function) else ()
            methods = {m: f for m, f in vars(thing).items() if not m.startswith("_") and m not in of_links}
            undocumented = [m for m, f in methods.items() if callable(f) and not f.__doc__]
            assert not undocumented, f"{name}.{public}"
