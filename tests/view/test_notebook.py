"""The report inside a notebook: whole, escaped, of bounded size, and a sentence where it cannot be shown."""

import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

import grokscope
from grokscope.runs import Store
from grokscope.specs import RunSpec
from grokscope.view import notebook
from grokscope.view.notebook import notebook_html
from grokscope.view.page.html import MARK

pytest.importorskip("jinja2")


class Elements(HTMLParser):
    """The elements of some HTML with their attributes, as a browser reads them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


@pytest.fixture
def runs(tmp_path: Path) -> grokscope.OpenedRuns:
    """Two runs in a folder whose name would break out of an attribute."""
    folder = tmp_path / "\"'><script>x<br>&amp;"
    for seed in range(2):
        row = {"step": 0, "train_accuracy": 1.0, "validation_accuracy": 0.0, "fsd": 0.1, "norm": 9.0}
        Store(folder).add(RunSpec().with_seed(seed)).append(row)
    return grokscope.open(folder)


def test_one_frame_holds_the_page_and_reaches_nothing_of_the_notebook(runs: grokscope.OpenedRuns) -> None:
    ((tag, attributes),) = Elements(runs._repr_html_()).found
    assert tag == "iframe"
    assert attributes["sandbox"] == "allow-scripts allow-downloads"
    assert attributes["title"] == "2 runs"
    page = str(attributes["srcdoc"])
    assert page.encode().startswith(MARK)
    assert "<title>&#34;&#39;&gt;&lt;script&gt;x&lt;br&gt;&amp;amp; · grokscope</title>" in page
    assert [tag for tag, _ in Elements(page).found].count("script") == 4  # three of data and one of code, all ours
    assert len(runs._repr_html_()) < 500_000


def test_only_the_chosen_runs_are_shown(runs: grokscope.OpenedRuns) -> None:
    assert '<iframe title="1 run"' in notebook_html(runs.where(seed=1))


def test_what_cannot_be_read_is_named_below_or_instead(runs: grokscope.OpenedRuns) -> None:
    (runs[0].folder.path / "spec.json").write_text("{")
    html = notebook_html(runs)
    assert html.startswith('<iframe title="1 run"')
    assert f"<p>&#x27;{runs.names[0]}&#x27; is left out: " in html
    assert [tag for tag, _ in Elements(html).found] == ["iframe", "p"]
    assert Elements(notebook_html(runs[:1])).found == [("p", {})]


@pytest.mark.parametrize(("limit", "sentence"), [("MOST_RUNS", "at most 1 runs"), ("LARGEST", "at most 1e-06 MB")])
def test_too_much_for_a_notebook_is_said_in_a_sentence(
    limit: str, sentence: str, runs: grokscope.OpenedRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notebook, limit, 1)
    html = notebook_html(runs)
    assert Elements(html).found == [("p", {})]
    assert sentence in html
    assert "choose some with runs.where(...)" in html


def test_nothing_chosen_and_a_missing_library_are_said_too(
    runs: grokscope.OpenedRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "there is nothing to show" in notebook_html(runs[:0])
    monkeypatch.setitem(sys.modules, "jinja2", None)
    assert "install it with: pip install &#x27;grokscope[report]&#x27;" in notebook_html(runs)
