"""A real Chromium, and reports to open in it."""

import json
import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from browser_runs import (
    HOSTILE_FOLDER,
    HOSTILE_TASKS,
    HOSTILE_TEXT,
    TINY,
    TINY_AGAIN,
    TINY_FORK,
    decayed,
    dipping,
    dropping,
)

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.synthetic import hostile, synthetic_claims, synthetic_records  # noqa: E402

from grokscope.jobs import run_all  # noqa: E402
from grokscope.runs import Store, run_name  # noqa: E402
from grokscope.runs.packing import save_records  # noqa: E402
from grokscope.view.page import source_of, write_page  # noqa: E402

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
FLAGS += ["--no-first-run", "--disable-sync", "--disable-quic"]


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Chromium, or a sentence that says what to install."""
    playwright = pytest.importorskip("playwright.sync_api", reason="browser tests need: pip install playwright")
    if CHROMIUM is None:
        pytest.skip("browser tests need Chromium: sudo apt-get install chromium")
    with playwright.sync_playwright() as running:
        found = running.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield found
        found.close()


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A window that notes every complaint and every request."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, accept_downloads=True)
    found = context.new_page()
    found.complaints, found.requests = [], []
    found.on("console", lambda message: found.complaints.append(message.text) if message.type == "error" else None)
    found.on("pageerror", lambda error: found.complaints.append(str(error)))
    found.on("dialog", lambda dialog: (found.complaints.append("a dialog"), dialog.dismiss()))
    found.on("request", lambda request: found.requests.append(request.url))
    yield found
    context.close()


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of packed records, some with hostile tasks, and claims, some hostile too."""
    folder = tmp_path_factory.mktemp("results")
    records = synthetic_records(17, evaluations=61)
    records += [hostile(records[0], task) for task in HOSTILE_TASKS]
    save_records(folder / "all.records.gz", records)
    claims = [
        *synthetic_claims(),
        {"name": HOSTILE_TASKS[1], "statement": HOSTILE_TASKS[0] + HOSTILE_TEXT, "verdict": HOSTILE_TASKS[1]},
    ]
    (folder / "claims.json").write_text(json.dumps(claims))
    message = [
        {"topic": "What holds", "text": "**It groks** in 9 of 9 runs.", "claims": ["drawn 1", "drawn 3"]},
        {"topic": "What holds", "text": HOSTILE_TASKS[0] + HOSTILE_TEXT, "claims": [HOSTILE_TASKS[1], "no such claim"]},
        {"topic": "How sure this is", "text": "Not very.", "claims": []},
    ]
    (folder / "message.json").write_text(json.dumps(message))
    (folder / "provenance.json").write_text(json.dumps({HOSTILE_TASKS[0]: HOSTILE_TASKS[1]}))
    return folder


@pytest.fixture(scope="session")
def report(results: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Its report's address."""
    path = tmp_path_factory.mktemp("page") / "report.html"
    write_page(path, source_of(results, HOSTILE_TASKS[1]))
    return path.as_uri()


@pytest.fixture(scope="session")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Records of one task: ten seeds at λ = 1, three at λ = 10, one with dropout, forks of two; one run dips twice."""
    folder = tmp_path_factory.mktemp("mixed")
    records = synthetic_records(50, evaluations=61, tasks=("add_mod97",))
    roots, forks = records[::5], [record for record in records if record.spec.fork][:8]
    strong = [replace(one, spec=decayed(one.spec.with_seed(10 * i), 10)) for i, one in enumerate(roots[1:4], start=1)]
    save_records(folder / "all.records.gz", [dipping(roots[0]), *roots[1:], *strong, dropping(roots[0]), *forks])
    return folder


@pytest.fixture(scope="session")
def mixed_report(mixed: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Its report's address."""
    path = tmp_path_factory.mktemp("page") / "mixed.html"
    write_page(path, source_of(mixed, "mixed runs"))
    return path.as_uri()


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs that were trained: a parent, its fork, one on a group, and one with a hostile name."""
    folder = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        run_all([TINY, TINY_FORK, TINY_AGAIN, replace(TINY, task="S3")], Store(folder), compiled=False)
    (folder / run_name(TINY_AGAIN)).rename(folder / HOSTILE_FOLDER)
    return folder


@pytest.fixture(scope="session")
def detailed(store: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a report that looks inside two of them."""
    path = tmp_path_factory.mktemp("page") / "detail.html"
    write_page(path, source_of(store), [run_name(TINY), "S3"])
    return path.as_uri()
