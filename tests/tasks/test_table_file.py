import json
from pathlib import Path

import numpy as np
import pytest

from grokscope.errors import InputError
from grokscope.tasks import named_group, named_task, pinned_task_name

S3 = named_group("S3")


def written(folder: Path, name: str, content: bytes | str) -> str:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return f"table:{path}"


@pytest.fixture
def s3_names(tmp_path: Path) -> list[str]:
    rows = S3.table.tolist()
    np.save(tmp_path / "s3.npy", S3.table)
    return [
        written(tmp_path, "rows.json", json.dumps(rows)),
        written(tmp_path, "named.json", json.dumps({"table": rows, "elements": list(S3.elements)})),
        written(tmp_path, "s3.csv", "\n".join(",".join(map(str, row)) for row in rows)),
        f"table:{tmp_path / 's3.npy'}",
    ]


def test_every_format_gives_the_same_group(s3_names: list[str]) -> None:
    for name in s3_names:
        task = named_task(name)
        assert task.group is not None
        assert np.array_equal(task.group.table, S3.table)
        assert np.array_equal(task.answers, named_task("S3").answers)
        assert sorted(task.basis().modes.dimensions) == [1, 4]


def test_elements_keep_their_names(s3_names: list[str]) -> None:
    group = named_task(s3_names[1]).group
    assert group is not None
    assert group.elements == S3.elements


def test_a_pinned_name_notices_a_changed_file(s3_names: list[str]) -> None:
    pinned = pinned_task_name(s3_names[0])
    assert pinned_task_name(pinned) == pinned
    assert named_task(pinned).symbols == 6
    Path(s3_names[0].removeprefix("table:")).write_text("[[0, 1], [1, 0]]")
    named_task.cache_clear()
    with pytest.raises(InputError, match=r"has changed: expected sha256 [0-9a-f]{16}…, got [0-9a-f]{16}…"):
        named_task(pinned)
    assert pinned_task_name("add_mod97") == "add_mod97"


@pytest.mark.parametrize(
    ("file", "content", "sentence"),
    [
        ("a.json", "{", "is not valid JSON"),
        ("a.json", "[" * 100_000, "is not valid JSON"),
        ("a.json", "{}", "must be rows of equally many whole numbers"),
        ("a.json", "[[0, 1], [1]]", "must be rows of equally many whole numbers"),
        ("a.json", "[[0, 1.5], [1, 0]]", "must be rows of equally many whole numbers"),
        ("a.json", "[[0, true], [1, 0]]", "must be rows of equally many whole numbers"),
        ("a.json", "[[0, 1e400], [1, 0]]", "must be rows of equally many whole numbers"),
        ("a.json", '{"table": [[0]], "elements": [1]}', "must be a list of texts"),
        ("a.json", '{"table": [[0]], "elements": ["a", "b"]}', "has 1 elements and 2 names for them"),
        ("a.csv", "0,x\n1,0", "must hold whole numbers"),
        ("a.csv", b"\xff\xfe\x00", "must hold whole numbers"),
        ("a.npy", b"\x80\x04K\x01.", "is not a plain .npy array"),
        ("a.npy", b"", "is not a plain .npy array"),
        ("a.txt", "0", "a table must be a .json, .csv or .npy file"),
        ("a.json", "[[0, 1], [1, 1]]", "is not a group: no inverse of 1"),
    ],
)
def test_bad_files(tmp_path: Path, file: str, content: bytes | str, sentence: str) -> None:
    with pytest.raises(InputError) as refusal:
        named_task(written(tmp_path, file, content))
    assert sentence in str(refusal.value)


def test_a_pickle_is_never_loaded(tmp_path: Path) -> None:
    class Explosive:
        def __reduce__(self):
            return (Path.write_text, (tmp_path / "exploded", "boom"))

    np.save(tmp_path / "bad.npy", np.array([Explosive()], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match=r"is not a plain \.npy array"):
        named_task(f"table:{tmp_path / 'bad.npy'}")
    assert not (tmp_path / "exploded").exists()


@pytest.mark.parametrize("name", ["table:", "table:nope.json", "table:a\0b.json", "table:/", "table:#0123456789abcdef"])
def test_bad_paths(name: str) -> None:
    with pytest.raises(InputError, match="table"):
        named_task(name)
