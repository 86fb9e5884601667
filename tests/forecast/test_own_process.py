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
