"""Files that are whole or absent."""

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from grokscope.errors import InputError
from grokscope.files import (
    DamagedError,
    discard,
    disk_error,
    open_file,
    parse_json,
    read_file,
    read_given,
    read_json,
    write_atomically,
)


def test_a_write_where_no_folder_can_be_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InputError, match="could not be written: Not a directory"):
        write_atomically(tmp_path / "file" / "x", b"")
    with pytest.raises(InputError, match="could not be written: File name too long"):
        write_atomically(tmp_path / ("x" * 300), b"")


@pytest.mark.parametrize(("number", "is_space"), [(errno.ENOSPC, True), (errno.EDQUOT, True), (errno.EROFS, False)])
def test_free_bytes_are_counted_only_where_they_lack(number: int, is_space: bool, tmp_path: Path) -> None:
    assert ("bytes are free there" in str(disk_error(tmp_path / "x", OSError(number, "why")))) is is_space
    assert str(disk_error(tmp_path / "no" / "x", OSError(number, "why"))).endswith(f"no folder '{tmp_path}/no'")


PLACES: dict[str, Callable[[Path], object]] = {
    "a folder": Path.mkdir,
    "a pipe": os.mkfifo,
    "a socket": lambda path: os.mknod(path, stat.S_IFSOCK | 0o600),
    "a link": lambda path: path.symlink_to("elsewhere"),
}


@pytest.mark.parametrize("kind", PLACES)
def test_what_is_no_file_is_named_and_never_waited_for(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    (tmp_path / "elsewhere").write_text("{}")
    PLACES[kind](path)
    for read in (read_file, lambda path: read_json(path, dict)):
        with pytest.raises(DamagedError, match=rf"x\.json' is {kind}, not a file|x\.json' cannot be read"):
            read(path)
    for flags in (os.O_RDWR, os.O_WRONLY | os.O_APPEND | os.O_CREAT):
        with pytest.raises((DamagedError, OSError)):
            open_file(path, flags)
    assert (tmp_path / "elsewhere").read_text() == "{}"


def test_a_file_that_somebody_named_may_be_reached_through_a_link_and_is_a_file_still(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"content")
    (tmp_path / "link").symlink_to("file")
    assert read_given(tmp_path / "link", "the plan") == b"content"
    os.mkfifo(tmp_path / "pipe")
    for name, sentence in (("pipe", "the plan is a pipe, not a file"), ("none", "the plan cannot be read: No such")):
        with pytest.raises(InputError, match=sentence):
            read_given(tmp_path / name, "the plan")


def test_nothing_larger_than_expected_is_read(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"12345")
    assert read_file(tmp_path / "x", most=5) == b"12345"
    with pytest.raises(DamagedError, match="has 5 bytes, and at most 4 are read"):
        read_file(tmp_path / "x", most=4)
    os.truncate(tmp_path / "x", 10**12)
    with pytest.raises(DamagedError, match="has 1,000,000,000,000 bytes"):
        read_json(tmp_path / "x", dict)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "is not valid JSON"),
        (b"\xff", "is not valid JSON"),
        ("[" * 100_000, "is not valid JSON"),
        ("9" * 5000, "is not valid JSON"),
        ("[" * 33 + "]" * 33, "has more than 32 lists and objects within each other"),
        ('{"a": NaN}', "holds finite numbers only, got 'NaN'"),
        ('{"a": -Infinity}', "holds finite numbers only, got '-Infinity'"),
        ('{"a": 1e999}', "holds finite numbers only, got '1e999'"),
        ('{"a": {"b": 1, "c": 2, "b": 3}}', "each JSON key of it must stand once, got 'b'"),
    ],
    ids=lambda text: repr(text[:20]),
)
def test_json_is_checked_before_it_is_used(text: str | bytes, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        parse_json(text, "it")


def test_json_of_some_depth_is_read() -> None:
    assert parse_json("[" * 31 + "1.5" + "]" * 31, "it")
    assert parse_json('{"a": [1, 2.5, null, true, "b"]}', "it") == {"a": [1, 2.5, None, True, "b"]}


def test_what_lies_in_a_files_place_is_discarded_and_a_folder_kept(tmp_path: Path) -> None:
    place = tmp_path / "x"
    for _ in range(2):
        place.mkdir()
        (place / "precious").write_text("mine")
        discard(place)
    os.mkfifo(place)
    discard(place)
    place.symlink_to(tmp_path / ".damaged-x")
    discard(place)
    discard(place)
    kept = {path.name: (path / "precious").read_text() for path in tmp_path.iterdir()}
    assert kept == {".damaged-x": "mine", ".damaged-x.2": "mine"}
