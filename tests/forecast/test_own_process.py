"""A forecaster in a file finds neither the scorer's memory nor its own."""

from pathlib import Path

import numpy as np
import pytest
from planted_ends import planted_cases

from grokscope.errors import InputError
from grokscope.forecast import Prefix
from grokscope.forecast.benchmark import score_forecaster
from grokscope.forecast.own_file import read_own_forecaster
from grokscope.forecast.own_process import ForecasterApart

CASES = planted_cases(cells=1, seeds=4, never=1)
RUNS = [Prefix(np.array([0, 100]), {"norm": np.array([3.0, 2.0])}, {"width": 128.0})] * 2


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(text)
    return path


def test_it_answers_as_the_same_file_in_this_process(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "import numpy as np\nTIER = 2\nprint('read')\n"
        "def predict(runs, horizon):\n"
        "    print('asked')\n"
        "    return [(1 / horizon, {0.1: r.column('norm').sum(), 0.5: r.value('width'), 0.9: np.inf}) for r in runs]\n",
    )
    with ForecasterApart(path) as apart:
        assert (apart.name, apart.tier, apart.source) == ("mine.py", 2, path.read_text())
        assert apart.predict(RUNS, 300) == read_own_forecaster(path).predict(RUNS, 300)
        assert apart.predict([], 300) == []


SEARCHES = {
    "gc": "import gc\ndef found(): return [one for one in gc.get_objects() if type(one).__name__ == 'Case']",
    "frames": "import inspect\ndef found():\n"
    "    return [x for f in inspect.stack() for v in f.frame.f_locals.values() if isinstance(v, (list, tuple))\n"
    "            for x in v if type(x).__name__ == 'Case']",
}


@pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES)
def test_no_case_is_found_in_memory(search: str, tmp_path: Path) -> None:
    text = f"{search}\ndef predict(runs, h): return [(float(len(found()) > 0), {{}}) for _ in runs]"
    path, cases = written(tmp_path, text), [*CASES]
    prefixes = [case.run.until(500) for case in cases]
    assert {one.probability for one in read_own_forecaster(path).predict(prefixes, 2000)} == {1.0}
    with ForecasterApart(path) as apart:
        assert {one.probability for one in apart.predict(prefixes, 2000)} == {0.0}


MEMORY = """
seen = []
def predict(runs, horizon):
    seen.append(max(run.step for run in runs))
    return [(0.5, {0.5: max(seen)}) for run in runs]
"""


def test_nothing_is_remembered_from_one_question_to_the_next(tmp_path: Path) -> None:
    path, run = written(tmp_path, MEMORY), CASES[0].run
    with ForecasterApart(path) as apart:
        apart.predict([run.until(1000)], 2000)
        assert apart.predict([run.until(100)], 2000)[0].median == 100


def test_what_remembers_in_this_process_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"it may remember nothing|otherwise beside others than alone"):
        score_forecaster(read_own_forecaster(written(tmp_path, MEMORY)), CASES)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def predict(r, h): import os; os._exit(0)", "ended its process without an answer"),
        ("def predict(r, h): import sys; sys.exit(0)", "failed: SystemExit: 0"),
        ("import sys; sys.exit(0)", "could not be run: SystemExit"),
        ("import os; os._exit(0)", "ended its process without an answer"),
        ("def predict(r, h): return [(0.5, {0.5: 10**400})] * 2", "int too large"),
        ("def predict(r, h): return [(float('nan'), {})] * 2", "must lie in .0, 1., got nan"),
        ("def predict(r, h): return [(0.5, {0.1: 9, 0.9: 1})] * 2", "must not fall with their level"),
        ("def predict(r, h): return [(0.5, {0.5: float('nan')})] * 2", "steps left must be at least 0"),
        ("def predict(r, h): r.clear(); return []", "must answer for 2 runs, got 0"),
        ("def predict(r, h): return [([0.5, 0.5], {})] * 2", "must give .* for each run"),
        (
            "import threading, time\nthreading.Thread(target=time.sleep, args=(9,), daemon=True).start()\n"
            "def predict(r, h): return []",
            "may start no threads",
        ),
    ],
)
def test_what_fails_apart_is_one_sentence(text: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=words), ForecasterApart(written(tmp_path, text)) as apart:
        apart.predict(RUNS, 300)


def test_rows_altered_in_place_change_no_step(tmp_path: Path) -> None:
    text = "def predict(r, h):\n    for x in r: x.steps[-1] += 10**9\n    return [(0.5, {0.5: 1})] * len(r)"
    path = written(tmp_path, text)
    with ForecasterApart(path) as apart:
        for forecaster in (apart, read_own_forecaster(path)):
            assert forecaster.predict([Prefix(np.array([0, 100]), {})], 10)[0].step == 100


def test_what_is_run_is_what_was_read(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "import pathlib; pathlib.Path(__file__).write_text('# sealed')\ndef predict(r, h): return [(0, {}) for _ in r]",
    )
    text = path.read_text()
    with ForecasterApart(path) as apart:
        assert path.read_text() == "# sealed"
        assert apart.source == text


KEEPERS = {  # what would last from one question to the next: when the file is read, and in each question
    "mapped memory": ("import mmap\nm = mmap.mmap(-1, 8)", "m[0] = 1", "may map files with ACCESS_READ"),
    "a pipe": ("import os\nr, w = os.pipe()", "os.write(w, b'x')", "may keep no file, pipe or socket open"),
    "a file": ("f = open('notes', 'w+')", "f.write('x')", "may keep no file, pipe or socket open"),
    "the place in a file": ("f = open(__file__)", "f.read()", "may keep no file, pipe or socket open"),
    "a socket": ("import socket\na, b = socket.socketpair()", "a.send(b'x')", "may keep no file, pipe or socket open"),
    "a process": ("import subprocess as s\np = s.Popen(['sleep', '9'])", "p.poll()", "may start no processes"),
    "a fork": ("import os\nif os.fork() == 0: os._exit(0)", "pass", "may start no processes"),
    "notes on the disk": ("", "with open('notes', 'a') as f: f.write('x')", "may write no files"),
    "notes by the system": ("import os", "os.open('notes', os.O_CREAT | os.O_RDWR)", "may write no files"),
    "a folder": ("import os", "os.mkdir('notes')", "may change nothing outside"),
    "a time stamp": ("import os", "os.utime(__file__, (1, 1))", "may change nothing outside"),
    "a database": ("import sqlite3", "sqlite3.connect('notes')", "may change nothing outside"),
    "a socket in a question": ("import socket", "socket.socket().close()", "may change nothing outside"),
    "a process in a question": ("import subprocess as s", "s.run(['true'])", "may start no processes"),
}


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="open files are listed by Linux alone")
@pytest.mark.parametrize(("start", "each", "words"), KEEPERS.values(), ids=KEEPERS)
def test_what_would_outlast_a_question_is_refused(
    start: str, each: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = written(tmp_path, f"{start}\ndef predict(r, h):\n    {each}\n    return [(0.5, {{}}) for _ in r]\n")
    with pytest.raises(InputError, match=words), ForecasterApart(path) as apart:
        apart.predict(RUNS, 300)


def test_libraries_weights_and_devices_are_at_hand(tmp_path: Path) -> None:
    """What honest forecasters do: they read weights, import late, and throw output away."""
    np.save(tmp_path / "weights.npy", np.arange(3.0))
    path = written(
        tmp_path,
        "import numpy as np, pathlib\nhere = pathlib.Path(__file__).parent\n"
        "weights = np.load(here / 'weights.npy')\n"
        "def predict(r, h):\n"
        "    import scipy.special\n"
        "    print(np.load(here / 'weights.npy'), file=open(__import__('os').devnull, 'w'))\n"
        "    return [(0.5, {0.5: float(weights.sum())}) for _ in r]\n",
    )
    with ForecasterApart(path) as apart:
        assert apart.predict(RUNS, 300)[0].median == 3


def test_the_runs_that_are_scored_cannot_be_read_nor_the_scorers_memory(tmp_path: Path) -> None:
    hidden = tmp_path / "runs"
    hidden.mkdir()
    (hidden / "log.jsonl").write_text("the end")
    (tmp_path / "link").symlink_to(hidden / "log.jsonl")
    (tmp_path / "hard").hardlink_to(hidden / "log.jsonl")
    others = ("runs/log.jsonl", "runs/../runs/log.jsonl", "link", "hard")
    if Path("/proc/self/mem").exists():
        others += ("/proc/{parent}/mem", "/proc/{parent}/cmdline", "/proc/{parent}/environ")
    for other in others:
        text = (
            f"import os\nplace = {other!r}.format(parent=os.getppid())\n"
            "there = place if place[0] == '/' else os.path.join(os.path.dirname(__file__), place)\n"
            "found = lambda: open(there, 'rb').read(1)\n"
        )
        asking = "def predict(r, h):\n    found()\n    return [(0.5, {}) for _ in r]\n"
        for source in (f"{text}found()\n{asking}", text + asking):
            path = written(tmp_path, source)
            with (
                pytest.raises(InputError, match=r"may not read the runs|may not look into other processes"),
                ForecasterApart(path, hidden=[hidden]) as apart,
            ):
                apart.predict(RUNS, 300)


PATCHES = {  # the process that answers is the file's own, so it can be made to forget nothing
    "forks": "process._forked = lambda forecaster, question, *rest: process._forecasts(forecaster, *question)",
    "limits": "process._forked = lambda f, q, p, limits: setattr(limits, 'stage', '') or process._forecasts(f, *q)",
}


@pytest.mark.parametrize("patch", PATCHES.values(), ids=PATCHES)
def test_who_makes_the_process_remember_is_found_out_by_the_other_one(patch: str, tmp_path: Path) -> None:
    """It keeps what it answered, so that it says the same when it is asked again, and ranks the runs of a batch."""
    text = f"""
import grokscope.forecast.own_process as process
{patch}
known = {{}}
def key(run): return (run.step, run.columns["validation_loss"][0])
def predict(runs, horizon):
    losses = sorted(float(run.columns["validation_loss"][-1]) for run in runs)
    for run in runs:
        rank = losses.index(float(run.columns["validation_loss"][-1]))
        known.setdefault(key(run), (1 / (2 + rank), {{0.5: 100.0 + rank}}))
    return [known[key(run)] for run in runs]
"""
    path = written(tmp_path, text)
    score_forecaster(read_own_forecaster(path), CASES)  # in this process nothing is noticed
    with pytest.raises(InputError, match=r"otherwise beside others than alone"), ForecasterApart(path) as apart:
        score_forecaster(apart, CASES)


def test_the_process_knows_no_name_of_what_is_hidden(tmp_path: Path) -> None:
    hidden = tmp_path / "hidden-from-it.records.gz"
    hidden.touch()
    text = """
import gc, os, sys
def texts():
    yield from (*sys.argv, *sys.orig_argv, *os.environ.values())
    for one in gc.get_objects():
        if isinstance(one, (list, tuple, set)): yield from one
        if isinstance(one, dict): yield from (*one, *one.values())
    frame = sys._getframe()
    while frame:
        yield from map(repr, frame.f_locals.values())
        frame = frame.f_back
name = "hidden-" + "from"
def predict(runs, horizon):
    known = [one for one in texts() if isinstance(one, str) and name + "-it" in one]
    return [(float(len(known) > 0), {}) for _ in runs]
"""
    path = written(tmp_path, text)
    with ForecasterApart(path, hidden=[hidden]) as apart:
        assert {one.probability for one in apart.predict(RUNS, 300)} == {0.0}
