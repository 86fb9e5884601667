"""The gallery shows every example, and what it shows was printed and logged by it."""

import json
from types import ModuleType

import pytest

from grokscope.view.charts.files import figure_csv
from scripts import DOCS, module_at


@pytest.fixture(scope="module")
def made() -> ModuleType:
    return module_at(DOCS / "make_gallery.py")


def test_every_example_is_in_the_gallery(made: ModuleType) -> None:
    files = {
        str(path.relative_to(made.EXAMPLES)) for path in made.EXAMPLES.rglob("*") if path.suffix in (".py", ".ipynb")
    }
    assert files == {*made.ELSEWHERE, *made.LONG, *(f"{name}.py" for name in made.SCRIPTS)}


def test_the_page_is_made_of_what_is_stored_and_every_picture_is_there(made: ModuleType) -> None:
    stored = json.loads(made.STORED.read_text(encoding="utf-8"))
    text = made.PAGE.read_text(encoding="utf-8")
    assert made.page(stored) == text
    assert {*stored} == {*made.SCRIPTS}
    for name in made.SCRIPTS:
        assert (made.PICTURES / f"{name}.svg").stat().st_size
        assert len(figure_csv(made.thumbnail(name, stored[name])).splitlines()) > 2
    for _, picture, target in made.ELSEWHERE.values():
        assert (DOCS / picture).stat().st_size
        assert (DOCS / target).is_file()


def test_an_example_is_executed_as_its_output_says(made: ModuleType) -> None:
    found, stored = made.execute("plain_loop"), json.loads(made.STORED.read_text(encoding="utf-8"))["plain_loop"]
    assert [row["step"] for row in found["log"]] == [row["step"] for row in stored["log"]]
    assert found["output"].splitlines()[0].split()[:2] == stored["output"].splitlines()[0].split()[:2]
    for now, then in zip(found["log"], stored["log"], strict=True):
        assert now["train_accuracy"] == pytest.approx(then["train_accuracy"], abs=0.1)
