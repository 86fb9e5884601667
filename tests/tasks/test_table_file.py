import io
import json
import os
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
    with pytest.raises(InputError, match=r"has changed: expected sha256 [0-9a-f]{16}…, got [0-9a-f]{16}…"):
        named_task(pinned)
    assert pinned_task_name("add_mod97") == "add_mod97"


def test_a_table_is_read_anew_when_its_file_changes(s3_names: list[str]) -> None:
    first = named_task(s3_names[0])
    assert named_task(s3_names[0]) is first
    Path(s3_names[0].removeprefix("table:")).write_text("[[0, 1], [1, 0]]")
    assert named_task(s3_names[0]).symbols == 2


def npy(header: str) -> bytes:
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode("latin-1")


def zipped() -> bytes:
    content = io.BytesIO()
    np.savez(content, table=S3.table)
    return content.getvalue()


NAMED = '{{"table": [[0, 1], [1, 0]], "elements": ["e", {}]}}'


@pytest.mark.parametrize(
    ("file", "content", "sentence"),
    [
        ("a.json", "{", "is not valid JSON"),
        ("a.json", "[" * 100_000, "is not valid JSON"),
        ("a.json", f"[[{'9' * 5000}]]", "is not valid JSON"),
        ("a.json", "{}", "must be rows of whole numbers, got None"),
        ("a.json", "[]", "must be rows of whole numbers, got []"),
        ("a.json", "[[0, 1], [1]]", "must have 2 entries, got [1]"),
        ("a.json", "[[0, 1], 7]", "must have 2 entries, got 7"),
        ("a.json", "[[0, 1.5], [1, 0]]", "must hold whole numbers, got 0·1 = 1.5"),
        ("a.json", "[[0, 1], [1, true]]", "must hold whole numbers, got 1·1 = True"),
        ("a.json", "[[0, 1e400], [1, 0]]", "holds finite numbers only, got '1e400'"),
        ("a.json", f"[[0, {10**30}], [1, 0]]", f"not closed: 0·1 = {10**30}, expected an element 0 … 1"),
        ("a.json", '{"table": [[0]], "element": ["e"]}', "unknown field 'element'; did you mean 'elements'?"),
        ("a.json", '{"table": [[0]], "table": [[1]]}', "must stand once, got 'table'"),
        ("a.json", "[" * 40 + "0" + "]" * 40, "has more than 32 lists and objects within each other"),
        ("a.json", NAMED.format('"e"'), "has two elements with the name 'e'"),
        ("a.json", NAMED.format(r'"\u001b[31m"'), r"must have 1 to 40 printable characters, got '\x1b[31m'"),
        ("a.json", NAMED.format(r'"a\nb"'), r"must have 1 to 40 printable characters, got 'a\nb'"),
        ("a.json", NAMED.format(r'"\ud800"'), r"must have 1 to 40 printable characters, got '\ud800'"),
        ("a.json", NAMED.format(f'"{"x" * 41}"'), "must have 1 to 40 printable characters, got 'xxx"),
        ("a.json", NAMED.format('""'), "must have 1 to 40 printable characters, got ''"),
        ("a.json", '{"table": [[0]], "elements": [1]}', "must be a list of texts"),
        ("a.json", '{"table": [[0]], "elements": ["a", "b"]}', "has 1 elements and 2 names for them"),
        ("a.csv", "0,x\n1,0", "must hold whole numbers, got 0·1 = 'x'"),
        ("a.csv", "0,1\n1,٠", r"must hold whole numbers, got 1·1 = '٠'"),  # an Arabic zero
        ("a.csv", "0,1\n1,0_0", "must hold whole numbers, got 1·1 = '0_0'"),
        ("a.csv", b"\xff\xfe\x00", "is not a CSV text"),
        ("a.npy", b"\x80\x04K\x01.", "is not a plain .npy array"),
        ("a.npy", b"", "is not a plain .npy array"),
        ("a.npy", zipped(), "is not a plain .npy array"),
        ("a.npy", npy("("), "is not a plain .npy array"),
        ("a.npy", npy("-" * 9000 + "1"), "is not a plain .npy array"),
        ("a.npy", npy(f"{{'descr': '<i8', 'fortran_order': False, 'shape': ({10**30},)}}"), "is not a plain .npy"),
        ("a.npy", npy(f"{{'descr': '<i8', 'fortran_order': False, 'shape': ({10**17},)}}"), "is not a plain .npy"),
        ("a.txt", "0", "a table must be a .json, .csv or .npy file"),
        ("a.json", "[[0, 1], [1, 1]]", "is not a group: no inverse of 1"),
    ],
)
def test_bad_files(tmp_path: Path, file: str, content: bytes | str, sentence: str) -> None:
    with pytest.raises(InputError) as rejection:
        named_task(written(tmp_path, file, content))
    assert sentence in str(rejection.value)
    assert str(rejection.value).isprintable()
    assert len(str(rejection.value)) < 500


def test_only_a_regular_file_is_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "folder.json").mkdir()
    for name in ("pipe.json", "folder.json"):
        with pytest.raises(InputError, match=f"is a {name.removesuffix('.json')}, not a file"):
            named_task(f"table:{tmp_path / name}")


def test_the_ending_is_checked_before_anything_is_read() -> None:
    with pytest.raises(InputError, match=r"must be a \.json, \.csv or \.npy file, got '/dev/zero'"):
        pinned_task_name("table:/dev/zero")


def test_a_file_too_large_is_not_read_to_its_end(tmp_path: Path) -> None:
    with (tmp_path / "large.json").open("wb") as file:
        file.truncate(2**32)  # sparse: it takes no room on the disk
    with pytest.raises(InputError, match="has 4,294,967,296 bytes, and at most 67,108,864 are read"):
        named_task(f"table:{tmp_path / 'large.json'}")


def test_a_pickle_is_never_loaded(tmp_path: Path) -> None:
    class Explosive:
        def __reduce__(self):
            return (Path.write_text, (tmp_path / "exploded", "boom"))

    np.save(tmp_path / "bad.npy", np.array([Explosive()], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match=r"is not a plain \.npy array"):
        named_task(f"table:{tmp_path / 'bad.npy'}")
    assert not (tmp_path / "exploded").exists()


@pytest.mark.parametrize(
    "name",
    [
        *("table:", "table:nope.json", "table:/", "table:#0123456789abcdef", f"table:{'x' * 5000}.json"),
        *("table:a\0b.json", "table:\ud800.json", "table:\udc80.json", "table:\x1b[31m.json", "table:a\n.json"),
    ],
)
def test_bad_paths(name: str) -> None:
    with pytest.raises(InputError, match="table") as rejection:
        named_task(name)
    assert str(rejection.value).isprintable()
    assert len(str(rejection.value)) < 300
