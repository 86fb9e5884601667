"""The notebook and the pages that Sphinx builds: what is stored is checked here, making it again is `make slow`."""

import importlib
import inspect
import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pages import blocks
from scripts import module_at

ROOT = Path(__file__).parents[1]
NOTEBOOK = ROOT / "examples" / "first_look.ipynb"
REFERENCE = ROOT / "docs" / "reference"
PAGES = {page: re.findall(r"automodule:: (\S+)", page.read_text(encoding="utf-8")) for page in REFERENCE.glob("*.md")}
WITHOUT_PAGE = {"cli", "shapes", "version"}  # commands have a page of their own; the others export no function


def code_cells(path: Path) -> list[dict[str, Any]]:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


def complaints(path: Path) -> list[str]:
    """What is wrong with a notebook that should have been executed from top to bottom."""
    cells = code_cells(path)
    kinds = {output["output_type"] for cell in cells for output in cell["outputs"]}
    pictures = sum("image/png" in output.get("data", {}) for cell in cells for output in cell["outputs"])
    found = {
        "it was not run in order": [cell["execution_count"] for cell in cells] != list(range(1, len(cells) + 1)),
        "a cell failed": "error" in kinds,
        "a cell wrote to stderr": any(o.get("name") == "stderr" for cell in cells for o in cell["outputs"]),
        "it has fewer than two pictures": pictures < 2,
        "it is larger than 300 kB": path.stat().st_size > 300_000,
    }
    return [sentence for sentence, holds in found.items() if holds]


def test_the_stored_notebook_was_executed_in_order_and_is_small() -> None:
    assert complaints(NOTEBOOK) == []


@pytest.mark.slow
def test_the_notebook_runs(tmp_path: Path) -> None:
    pytest.importorskip("nbclient", reason="install it with: pip install 'grokscope[docs]'")
    copy = tmp_path / "copy.ipynb"
    shutil.copy(NOTEBOOK, copy)
    subprocess.run([sys.executable, ROOT / "docs" / "run_notebook.py", copy], check=True, timeout=280)
    assert complaints(copy) == []
    assert [cell["source"] for cell in code_cells(copy)] == [cell["source"] for cell in code_cells(NOTEBOOK)]


def test_every_room_has_its_place_in_the_reference() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    rooms = {room for layer in contracts["contracts"][0]["layers"] for room in layer.split(" | ")}
    named = {module.split(".")[1] for modules in PAGES.values() for module in modules}
    assert rooms - WITHOUT_PAGE == named
    listed = re.findall(r"^(\w+)$", (REFERENCE / "index.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert {page.stem for page in PAGES} - {"index"} <= set(listed)


@pytest.mark.parametrize("page", sorted(PAGES), ids=lambda page: page.stem)
def test_every_module_of_the_reference_exists_and_says_what_it_exports(page: Path) -> None:
    assert [module for module in PAGES[page] if importlib.import_module(module).__all__ is None] == []
    assert len(set(PAGES[page])) == len(PAGES[page])


def has_example(function: Any) -> bool:
    """Whether a function's docstring shows it; of code that rules of claims are a digest of, its module's does.

    `Example::` is not run: it needs a cluster, a network, a device or somebody else's package.
    """
    if re.search(r"^(>>> |Example::$)", inspect.getdoc(function) or "", re.MULTILINE):
        return True
    shown = [line for line in (sys.modules[function.__module__].__doc__ or "").splitlines() if line.startswith(">>> ")]
    return any(f"{function.__name__}(" in line for line in shown)


@pytest.mark.parametrize("page", sorted(PAGES), ids=lambda page: page.stem)
def test_every_function_of_the_reference_has_an_example(page: Path) -> None:
    public = [getattr(importlib.import_module(module), name) for module in PAGES[page] for name in names_of(module)]
    functions = [one for one in public if inspect.isfunction(one) and one.__name__ != "main"]  # run with `python -m`
    assert [f"{one.__module__}.{one.__name__}" for one in functions if not has_example(one)] == []


def names_of(module: str) -> list[str]:
    return list(importlib.import_module(module).__all__)


def test_an_example_that_is_missing_is_noticed() -> None:
    assert has_example(importlib.import_module("grokscope.law").fit_law)
    assert not has_example(has_example)


def test_every_page_has_its_place_in_a_table_of_contents() -> None:
    docs = ROOT / "docs"
    listed = set(re.findall(r"^([\w/-]+)$", (docs / "index.md").read_text(encoding="utf-8"), re.MULTILINE))
    pages = {str(page.relative_to(docs).with_suffix("")) for page in docs.rglob("*.md") if "_build" not in page.parts}
    assert {page for page in pages if not page.startswith("reference/")} - {"index"} == listed - {"reference/index"}


def test_no_page_leads_to_a_page_that_sphinx_does_not_build() -> None:
    # Files beside the pages are copied, Markdown elsewhere is a page that does not exist.
    docs = ROOT / "docs"
    links = re.compile(r"\]\(([^)#:]*\.md)\b")
    found = {page: links.findall(page.read_text(encoding="utf-8")) for page in docs.rglob("*.md")}
    assert sum(map(len, found.values())) > 30
    outside = {
        page.name: link
        for page, some in found.items()
        for link in some
        if docs not in (page.parent / link).resolve().parents
    }
    assert outside == {}


@pytest.fixture(scope="module")
def conf() -> ModuleType:
    return module_at(ROOT / "docs" / "conf.py")


def test_the_page_of_the_notebook_has_every_cell_and_output(conf: ModuleType) -> None:
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    page = conf.notebook_page(notebook)
    outputs = [output for cell in code_cells(NOTEBOOK) for output in cell["outputs"]]
    assert page.count("data:image/png") == sum("image/png" in output.get("data", {}) for output in outputs)
    assert blocks(page, "python") == ["".join(cell["source"]) + "\n" for cell in code_cells(NOTEBOOK)]
    assert conf.output_block({"output_type": "stream", "text": ["a\n", "b\n"]}) == "```text\na\nb\n```"
    assert conf.output_block({"output_type": "display_data", "data": {}}) == ""


def test_the_stored_results_of_a_study_are_on_its_page(conf: ModuleType) -> None:
    for page, names in conf.STORED.items():
        for name in names:
            text = conf.stored_page(ROOT / "results" / name, f"../../results/{Path(name).parent}")
            assert not re.search(r"^# ", text, re.MULTILINE)
            targets = [target for target in re.findall(r"\]\(([^)#\s]+)\)", text) if "://" not in target]
            here = (ROOT / "docs" / page).parent
            assert [target for target in targets if not (here / target).exists() or target.endswith(".md")] == []


@pytest.mark.slow
def test_sphinx_builds_every_page_without_a_warning_and_documents_what_is_public(tmp_path: Path) -> None:
    pytest.importorskip("myst_parser", reason="install it with: pip install 'grokscope[docs]'")
    pytest.importorskip("furo", reason="install it with: pip install 'grokscope[docs]'")
    command = [sys.executable, "-m", "sphinx", "-b", "html", "-q", "-W", "-d", tmp_path / "trees", ROOT / "docs"]
    subprocess.run([*command, tmp_path / "html"], check=True, timeout=280)
    for page, modules in PAGES.items():
        html = (tmp_path / "html" / "reference" / f"{page.stem}.html").read_text(encoding="utf-8")
        for module in modules:
            names = importlib.import_module(module).__all__
            missing = [one for one in names if f'id="{module}.{one}"' not in html and f">{one}<" not in html]
            assert missing == [], module
    commands = (tmp_path / "html" / "reference" / "commands.html").read_text(encoding="utf-8")
    assert "--stop-after-grokking" in re.sub("<[^>]*>", "", commands)
