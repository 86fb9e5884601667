"""A user's own task: a file is data, and a function is code that is run only when a task is made of it."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest

from grokscope.errors import InputError
from grokscope.specs import RunSpec
from grokscope.tasks import named_task, own_rows, pinned_task_name

TOKENS = np.array([[a, b] for a in range(4) for b in range(4)])
ANSWERS = TOKENS.sum(axis=1) % 4
ROWS = "def rows():\n    return {'tokens': [[0, 1], [1, 0], [1, 1], [0, 0]], 'answers': [1, 1, 0, 0]}\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    np.savez("mine.npz", tokens=TOKENS, answers=ANSWERS)
    Path("mine.py").write_text(ROWS)
    return tmp_path


def rejection(name: str) -> str:
    with pytest.raises(InputError) as found:
        named_task(name)
    sentence = str(found.value)
    assert sentence.isprintable()
    assert len(sentence) < 500
    return sentence


@pytest.mark.usefixtures("here")
def test_a_file_and_a_function_are_tasks() -> None:
    task = named_task("mine.npz")
    assert task.name == "mine.npz"
    assert task.title == "your own rows in mine.npz"
    assert task.tokens is not None
    assert np.array_equal(task.tokens, TOKENS)
    assert named_task("mine.npz") is task
    assert (named_task("mine.py:rows").rows, named_task("mine.py:rows").name) == (4, "mine.py:rows")


def test_parquet_is_the_same_task(here: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table({"tokens": TOKENS.tolist(), "answer": ANSWERS}), here / "mine.parquet")
    assert np.array_equal(named_task("mine.parquet").answers, ANSWERS)


@pytest.mark.usefixtures("here")
def test_a_pinned_name_notices_a_changed_file() -> None:
    for name, change in {"mine.npz": lambda: np.savez("mine.npz", tokens=TOKENS, answers=ANSWERS[::-1]),
                         "mine.py:rows": lambda: Path("mine.py").write_text(ROWS + "# later\n")}.items():  # fmt: skip
        pinned = pinned_task_name(name)
        assert pinned_task_name(pinned) == pinned
        assert named_task(pinned).name == name
        change()
        assert "has changed: expected sha256" in rejection(pinned)
        assert pinned_task_name(name) != pinned


def test_a_run_is_named_by_the_content_and_not_by_the_place(here: Path) -> None:
    (here / "other").mkdir()
    (here / "other" / "moved.npz").write_bytes((here / "mine.npz").read_bytes())
    pinned = [pinned_task_name(name) for name in ("mine.npz", "other/moved.npz")]
    assert pinned[0] != pinned[1]
    assert RunSpec(pinned[0]).content_hash == RunSpec(pinned[1]).content_hash
    with pytest.raises(InputError, match="add the digest"):
        _ = RunSpec("mine.npz").content_hash


def test_a_link_is_read_and_named_by_itself(here: Path) -> None:
    (here / "linked.npz").symlink_to("mine.npz")
    assert named_task("linked.npz").name == "linked.npz"
    assert pinned_task_name("linked.npz").partition("#")[2] == pinned_task_name("mine.npz").partition("#")[2]


@pytest.mark.usefixtures("here")
def test_two_functions_of_one_file_are_two_tasks() -> None:
    Path("mine.py").write_text(f"{ROWS}\ndef others():\n    return rows()\n")
    assert pinned_task_name("mine.py:rows").partition("#")[2] != pinned_task_name("mine.py:others").partition("#")[2]


@pytest.mark.usefixtures("here")
def test_a_function_may_return_a_task_with_groups() -> None:
    Path("mine.py").write_text(
        "import numpy as np\nfrom grokscope.tasks import RowGroup, named_task\nfrom dataclasses import replace\n"
        "def task():\n    return replace(named_task('add_mod5'), name='mine',"
        " row_groups=(RowGroup('most', 'drawn', np.arange(20)), RowGroup('far', 'held_out', np.arange(20, 25))))\n"
    )
    assert named_task("mine.py:task").held_out == ("far",)


@pytest.mark.usefixtures("here")
def test_a_function_finds_its_own_file_and_may_define_dataclasses() -> None:
    Path("mine.py").write_text(
        "from dataclasses import dataclass\nfrom pathlib import Path\n"
        f"@dataclass\nclass Sizes:\n    n: int = 2\n{ROWS}\nassert Path(__file__).name == 'mine.py'\n"
    )
    before = set(sys.modules)
    assert named_task("mine.py:rows").rows == 4
    assert "mine" not in set(sys.modules) - before, "it stays out of the program's modules"


@pytest.mark.usefixtures("here")
def test_what_a_function_prints_is_not_in_the_answer(capsys: pytest.CaptureFixture[str]) -> None:
    Path("mine.py").write_text(f"print('imported')\n{ROWS.replace('return', 'print(1); return')}")
    named_task("mine.py:rows")
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err == "imported\n1\n"


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("def rows(:", "'mine.py' cannot be run: SyntaxError: "),
        ("1 / 0", "'mine.py' cannot be run: ZeroDivisionError: division by zero"),
        ("import no_such_module", "'mine.py' cannot be run: ModuleNotFoundError: No module named 'no_such_module'"),
        ("import sys; sys.exit(3)", "'mine.py' cannot be run: SystemExit: 3"),
        ("x = 1", "'mine.py' has no function 'rows'"),
        ("rows = 1", "'mine.py' has no function 'rows'"),
        ("def rows():\n    raise ValueError('first\\nsecond')", "'mine.py:rows' fails: ValueError: first"),
        ("def rows():\n    raise KeyError", "'mine.py:rows' fails: KeyError: no message"),
        ("def rows():\n    raise SystemExit", "'mine.py:rows' fails: SystemExit: no message"),
        ("def rows():\n    raise ValueError('\\x1b[31mred')", r"'mine.py:rows' fails: ValueError: \x1b[31mred"),
        ("def rows():\n    return rows()", "'mine.py:rows' fails: RecursionError: "),
        ("def rows(n):\n    return n", "'mine.py:rows' fails: TypeError: rows() missing 1 required"),
        ("def rows():\n    return None", "'mine.py:rows' must return a Task, or a dict of arrays, got NoneType"),
        ("def rows():\n    return [1, 2]", "'mine.py:rows' must return a Task, or a dict of arrays, got list"),
        ("def rows():\n    yield 1", "'mine.py:rows' must return a Task, or a dict of arrays, got generator"),
        ("def rows():\n    return {}", "mine.py:rows needs an array answers, got nothing"),
        ("def rows():\n    return {1: 2}", "'mine.py:rows' must name each array with a text, got 1"),
        ("def rows():\n    return {'tokens': [[0], [1, 2]], 'answers': [0, 1]}", "they are ragged"),
        ("def rows():\n    return {'tokens': [['a']], 'answers': [0]}", "the tokens of mine.py:rows must be numbers"),
    ],
)
@pytest.mark.usefixtures("here")
def test_whatever_a_function_does_is_one_sentence(source: str, sentence: str) -> None:
    Path("mine.py").write_text(source)
    assert sentence in rejection("mine.py:rows")


@pytest.mark.usefixtures("here")
def test_a_file_that_names_itself_as_a_task_ends_in_one_sentence() -> None:
    Path("mine.py").write_text(
        "from grokscope.tasks import named_task\ndef rows():\n    return named_task('mine.py:rows')\n"
    )
    assert "mine.py:rows" in rejection("mine.py:rows")
    Path("mine.py").write_text("from grokscope.tasks import named_task\nnamed_task('mine.py:rows')\n")
    assert "mine.py" in rejection("mine.py:rows")


@pytest.mark.usefixtures("here")
def test_a_function_that_is_stopped_by_its_user_stops() -> None:
    Path("mine.py").write_text("def rows():\n    raise KeyboardInterrupt\n")
    with pytest.raises(KeyboardInterrupt):
        named_task("mine.py:rows")


@pytest.mark.usefixtures("here")
def test_code_is_not_run_unless_its_function_is_named_and_wanted() -> None:
    Path("mine.py").write_text(f"open('ran', 'w')\n{ROWS}")
    pinned = pinned_task_name("mine.py:rows")
    with pytest.raises(
        InputError, match=r"'mine\.py:rows' is a function: it is run only where it is trained or measured"
    ):
        named_task(pinned, runs_code=False)
    for name in ("mine.py", "mine.py:", "mine.py:rows()", "mine.py:a.b", "mine.py:rows#0123", "mine.pyc:rows"):
        with pytest.raises(InputError):
            named_task(name)
    assert not Path("ran").exists()
    Path("mine.py").write_text(f"open('ran', 'w')\n{ROWS}# changed\n")
    assert "has changed" in rejection(pinned)
    assert not Path("ran").exists(), "changed code is not run under its old digest"


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("nope.npz", "the task 'nope.npz' cannot be read: No such file or directory"),
        ("nope.py:rows", "the task 'nope.py' cannot be read: No such file or directory"),
        ("folder.npz", "the task 'folder.npz' is a folder, not a file"),
        ("pipe.npz", "the task 'pipe.npz' is a pipe, not a file"),
        ("loop.npz", "the task 'loop.npz' is a link, not a file"),
        ("gone.npz", "the task 'gone.npz' cannot be read: No such file or directory"),
        ("endless.npz", "the task 'endless.npz' is a device, not a file"),
        ("large.npz", "the task 'large.npz' has 4,294,967,296 bytes, and at most 268,435,456 are read"),
        ("large.py:rows", "the task 'large.py' has 4,294,967,296 bytes, and at most 1,048,576 are read"),
        ("mine.py", "; a function that gives rows is named as FILE.py:FUNCTION"),
        ("mine.csv", "; a group's table is named as table:FILE, and rows are a .npz or .parquet file"),
        ("mine.npx", "; rows of your own are a .npz or .parquet file, or FILE.py:FUNCTION"),
        ("a\0b.npz", "a task of your own is a printable .npz, .parquet or .py:FUNCTION, got 'a\\x00b.npz'"),
        ("\x1b[31m.npz", "a task of your own is a printable"),
        ("\udc80.npz", "a task of your own is a printable"),
        (f"{'x' * 5000}.npz", "cannot be read: File name too long"),
    ],
)
def test_bad_names_are_one_sentence(here: Path, name: str, sentence: str) -> None:
    os.mkfifo("pipe.npz")
    for link, target in {"loop": "loop.npz", "gone": "nowhere", "endless": "/dev/zero"}.items():
        Path(f"{link}.npz").symlink_to(target)
    Path("folder.npz").mkdir()
    for path in ("large.npz", "large.py"):
        with Path(path).open("wb") as file:
            file.truncate(2**32)  # sparse: it takes no room on the disk
    assert sentence in rejection(name)


@pytest.mark.usefixtures("here")
def test_what_is_kept_of_large_files_is_little() -> None:
    assert own_rows._task.cache_info().maxsize == 8
