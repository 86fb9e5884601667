"""The live view: a real server, a real browser, and a run that is really trained meanwhile."""

import os
import re
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from browser_runs import TINY

from grokscope.jobs import run_all
from grokscope.runs import RunOutcome, Store
from grokscope.specs import Cadence, RunSpec

pytestmark = pytest.mark.browser
EVALUATION = {"train_accuracy": 0.5, "validation_accuracy": 0.25, "fsd": 0.1, "norm": 9.0, "rank": 2.0}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("live")
    run = Store(path).add(TINY)
    for step in (0, 2, 4):
        run.append({"step": step, **EVALUATION})
    return path


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    """`grokscope serve` as a person starts it."""
    with server_of(folder) as found:
        yield found


@pytest.fixture
def serving() -> Iterator[Callable[[Path], str]]:
    """Serves folders for as long as a test runs."""
    with ExitStack() as stack:
        yield lambda path: stack.enter_context(server_of(path))


@contextmanager
def server_of(path: Path) -> Iterator[str]:
    """A server in a process of its own; its address."""
    command = [sys.executable, "-m", "grokscope", "serve", str(path), "--port", "0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "COLUMNS": "200"})
    assert server.stdout is not None
    try:
        yield server.stdout.readline().removeprefix("open ").strip()
    finally:
        server.terminate()
        server.communicate(timeout=20)


def long_run(seed: int) -> RunSpec:
    """A run of a thousand steps, which nobody trains."""
    return replace(TINY, training=replace(TINY.training, steps=1000)).with_seed(seed)


def status(url: str, headers: dict[str, str] | None = None, method: str = "GET") -> int:
    request = urllib.request.Request(url, headers=headers or {}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_a_request_without_the_token_or_for_another_host_is_rejected(address: str) -> None:
    base, token = address.split("/?token=")
    port = base.rpartition(":")[2]
    assert base.startswith("http://127.0.0.1:")
    assert status(address) == 200
    assert status(address, {"Host": f"localhost:{port}"}) == 200
    for path in ("/", "/events"):
        assert status(base + path) == 403
        assert status(f"{base}{path}?token=wrong") == 403
        assert status(f"{base}{path}?token=%FF%00") == 403
        assert status(f"{base}{path}?token={token}", {"Host": "evil.example"}) == 403
        assert status(f"{base}{path}?token={token}", {"Host": f"evil.example:{port}"}) == 403
        assert status(f"{base}{path}?token={token}", {"Origin": "http://evil.example"}) == 403
    for path in ("/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/spec.json", "/static/x"):
        assert status(f"{base}{path}?token={token}") == 404
    assert status(address, method="POST") == 405


def until(page: Any, expression: str, seconds: float = 20) -> None:
    """Wait until an expression holds; the page's policy forbids Playwright's own way, which evaluates text."""
    end = time.monotonic() + seconds
    while not page.evaluate(expression):
        assert time.monotonic() < end, expression
        page.wait_for_timeout(50)


def last_step(step: int) -> str:
    return f"""[...document.querySelectorAll("table.runs tbody tr")].some(
        row => row.querySelector("a").title.startsWith("add_mod7")
            && row.querySelector("[data-field=last]").textContent === "{step}")"""


def test_a_second_browser_without_the_token_gets_403(address: str, browser: Any) -> None:
    context = browser.new_context()
    page = context.new_page()
    assert page.goto(address.split("?")[0]).status == 403
    context.close()


def test_evaluations_appear_and_a_rewound_log_is_followed(address: str, folder: Path, page: Any) -> None:
    run = next(iter(Store(folder)))
    page.goto(f"{address}#/runs")
    until(page, last_step(4))
    run.append({"step": 6, **EVALUATION})
    start = time.monotonic()
    until(page, last_step(6))
    assert time.monotonic() - start < 2
    run.rewind(2)  # the trainer was killed and continues from an earlier state
    until(page, last_step(2))
    run.append({"step": 4, **EVALUATION, "train_accuracy": 1.0})
    until(page, last_step(4))
    assert (
        page.inner_text("table.runs tbody tr td[data-field=memorized]") == "4"
    )  # memorised, by the new evaluation at step 4
    log = run.path / "log.jsonl"
    log.write_bytes(log.read_bytes() + b'{"step": 8, "half')  # torn: not shown, not an error
    run.append({"step": 10, **EVALUATION})
    time.sleep(1)
    run.append({"step": 12, **EVALUATION})
    until(page, last_step(12))
    assert page.inner_text("#live") == "live"
    assert page.complaints == []


def test_a_training_runs_points_appear_within_two_seconds_of_being_measured(
    address: str, folder: Path, page: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    spec = TINY.with_seed(5)
    spec = type(spec).from_dict({**spec.to_dict(), "task": "add_mod11", "measurements": Cadence(every=1).to_dict()})
    Store(folder).add(spec)
    page.goto(f"{address}#/runs?q=add_mod11")
    page.wait_for_selector("table.runs tbody tr")
    page.evaluate("""() => {
        window.seen = [];
        new MutationObserver(() => {
            const cell = document.querySelector("table.runs tbody td[data-field=last]");
            const step = Number(cell?.textContent);
            if (cell && step >= 0) seen.push([step, Date.now() / 1000]);
        }).observe(document.getElementById("main"), {childList: true, subtree: true});
    }""")
    measured: dict[int, float] = {}

    def note(progress: Any) -> None:
        measured[progress.step] = time.time()
        time.sleep(0.1)

    training = threading.Thread(
        target=run_all, args=([spec], Store(folder)), kwargs={"compiled": False, "report": note}
    )
    training.start()
    until(page, "seen.some(([step]) => step === 12)", 60)
    training.join()
    seen = page.evaluate("seen")
    delays = [min(at for step, at in seen if step >= wanted) - when for wanted, when in measured.items()]
    assert len(delays) == 13
    assert median(delays) < 2, delays
    until(page, "!document.querySelector('table.runs tbody').textContent.includes('unfinished')")  # it ended
    assert page.complaints == []


def test_the_overview_shows_curves_progress_speed_and_time_left_until_something_groks(
    page: Any, tmp_path: Path, serving: Callable[[Path], str]
) -> None:
    store = Store(tmp_path)
    first, second = (store.add(long_run(seed)) for seed in (1, 2))
    first.append({"step": 0, **EVALUATION})
    page.goto(serving(tmp_path))
    until(page, "document.querySelectorAll('figure.plot svg[role=img]').length > 0")
    assert "−" not in page.locator("#figure-all-validation_accuracy svg[role=img]").text_content(), "a negative step"
    drawn = (
        "document.querySelector('#figure-all-validation_accuracy path[fill=none]')?.getAttribute('d').split('L').length"
    )
    time.sleep(0.5)
    for step in (100, 200):
        for run in (first, second):
            run.append({"step": step, **EVALUATION})
    until(page, f"{drawn} === 3")
    assert page.locator("#figure-all-validation_accuracy .legend .name").all_inner_texts() == ["seed 1", "seed 2"]
    assert not page.is_visible("#figure-headline")
    assert not page.is_visible("#figure-outcomes"), "none has ended"
    until(page, "/steps\\/s/.test(document.getElementById('progress').textContent)")
    told = page.inner_text("#progress")
    assert "0 of 2" in told
    assert "20 %" in told, "400 of 2,000 steps"
    assert page.get_attribute("#progress progress", "value") == "0.2"
    assert re.search(r"time left\s+[0-9]+ (s|min|h)", told)
    first.append({"step": 300, **EVALUATION, "validation_accuracy": 1.0})
    until(page, "document.querySelector('#figure-headline')?.checkVisibility()")
    assert not page.is_visible("#figure-all-validation_accuracy")
    for run in (first, second):
        run.finish(RunOutcome("never"))
    until(page, "!document.getElementById('progress').checkVisibility()")
    assert page.complaints == []
