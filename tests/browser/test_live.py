"""The live view: a real server, a real browser, and a run that is really trained meanwhile."""

import os
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from browser_runs import TINY

from grokscope.jobs import run_all
from grokscope.runs import Store
from grokscope.specs import Cadence

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
    command = [sys.executable, "-m", "grokscope", "serve", str(folder), "--port", "0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "COLUMNS": "200"})
    assert server.stdout is not None
    yield server.stdout.readline().removeprefix("open ").strip()
    server.terminate()
    server.communicate(timeout=20)


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
        row => row.cells[1].textContent.startsWith("add_mod7") && row.cells[11].textContent === "{step}")"""


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
    assert page.inner_text("table.runs tbody tr td:nth-child(8)") == "4"  # memorised, by the new evaluation at step 4
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
            const row = document.querySelector("table.runs tbody tr"), step = row && Number(row.cells[11].textContent);
            if (row && step >= 0) seen.push([step, Date.now() / 1000]);
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
