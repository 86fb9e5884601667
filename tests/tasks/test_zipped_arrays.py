"""An .npz file that is not trusted: nothing of it is unpickled, and nothing large is unpacked unasked."""

import io
import tracemalloc
import zipfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from grokscope.errors import InputError
from grokscope.tasks.zipped_arrays import HEADER, MAX_MEMBERS, MAX_UNPACKED, zipped_arrays

TOKENS = np.arange(6).reshape(3, 2)


def npz(compressed: bool = False, **arrays: np.ndarray) -> bytes:
    content = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(content, **arrays)  # type: ignore[arg-type]
    return content.getvalue()


def zipped(method: int = zipfile.ZIP_STORED, **members: bytes) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return content.getvalue()


def header(descr: str = "<i8", shape: str = "(3, 2)", order: str = "False") -> bytes:
    text = f"{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}}}"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("dtype", ["i1", "<i8", ">i4", "u2", "f4", ">f8", "?"])
def test_arrays_come_back_as_numpy_wrote_them(compressed: bool, dtype: str) -> None:
    given = {
        "tokens": TOKENS.astype(dtype),
        "one": np.array(7).astype(dtype),
        "f": np.asfortranarray(TOKENS).astype(dtype),
    }
    found = zipped_arrays(npz(compressed, **given), "mine")
    assert found.keys() == given.keys()
    for name, array in given.items():
        assert np.array_equal(found[name], array)
        assert found[name].shape == array.shape


def test_an_array_larger_than_its_header_is_read_to_its_end() -> None:
    large = np.arange(HEADER)
    assert np.array_equal(zipped_arrays(npz(True, large=large, tiny=TOKENS), "mine")["large"], large)


def test_an_empty_file_has_no_arrays() -> None:
    assert zipped_arrays(npz(), "mine") == {}


GOOD = npz(tokens=TOKENS)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "mine is not a plain .npz file"),
        (b"PK\x03\x04", "mine is not a plain .npz file"),
        (b"\x80\x04K\x01.", "mine is not a plain .npz file"),
        (GOOD[: len(GOOD) // 2], "mine is not a plain .npz file"),
        (GOOD[:-4], "mine is not a plain .npz file"),
        (zipped(**{"a.txt": b"1"}), "the array 'a.txt' in mine must be an .npy array"),
        (zipped(**{"a.npy": b""}), "the array 'a.npy' in mine has no header of a plain array"),
        (zipped(**{"a.npy": b"\x93NUMPY\x01\x00\xff\xff{"}), "the array 'a.npy' in mine has no header"),
        (zipped(**{"a.npy": header() + TOKENS.tobytes()[:-1]}), "says it has 48 bytes, and 47 are stored"),
        (zipped(**{"a.npy": header() + TOKENS.tobytes() + b"x"}), "says it has 48 bytes, and 49 are stored"),
        (zipped(**{"a.npy": header(shape=f"({10**17},)")}), "may have at most 134,217,728 numbers, got (100000"),
        (zipped(**{"a.npy": header(shape=f"({10**40}, 0)")}), "may have at most 134,217,728 numbers, got (1000"),
        (zipped(**{"a.npy": header(shape="(-3, -2)") + TOKENS.tobytes()}), "has a negative length, got (-3, -2)"),
        (zipped(**{"a.npy": header(shape="(True, 2)")}), "in mine"),
        (zipped(**{"a.npy": header("|O") + b"x" * 48}), "is pickled, and no pickle is loaded"),
        (zipped(**{"a.npy": header("<U1") + b"x" * 24}), "must hold numbers, got '<U1'"),
        (zipped(**{"a.npy": header("<c16") + b"x" * 96}), "must hold numbers, got 'complex128'"),
        (zipped(**{"a.npy": header("<M8[s]") + b"x" * 48}), "must hold numbers, got 'datetime64[s]'"),
        (zipped(**{"a.npy": header("|V8") + b"x" * 48}), "must hold numbers"),
        (zipped(**{"a.npy": header("-" * 900)}), "has no header of a plain array"),
        (zipped(**{f"a{i}.npy": b"" for i in range(MAX_MEMBERS + 1)}), "may hold at most 64 arrays, got 65"),
        (zipped(**{"a\x1b[31m.npy": b""}), r"the array 'a\x1b[31m.npy' in mine has no header"),
    ],
)
def test_bad_files_are_one_sentence(content: bytes, sentence: str) -> None:
    with pytest.raises(InputError) as rejection:
        zipped_arrays(content, "mine")
    assert sentence in str(rejection.value)
    assert str(rejection.value).isprintable()
    assert len(str(rejection.value)) < 400


@pytest.mark.parametrize("place", range(0, len(GOOD), 7))
def test_a_damaged_byte_is_one_sentence_or_another_array(place: int) -> None:
    damaged = bytearray(GOOD)
    damaged[place] ^= 0xFF
    with suppress(InputError):  # and nothing else
        assert all(array.dtype.kind in "biuf" for array in zipped_arrays(bytes(damaged), "mine").values())


def test_a_truncated_file_is_one_sentence_wherever_it_ends() -> None:
    for end in range(len(GOOD)):
        with pytest.raises(InputError, match="mine"):
            zipped_arrays(GOOD[:end], "mine")


def test_two_arrays_of_one_name_are_one_sentence() -> None:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("a.npy", header() + TOKENS.tobytes())
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("a.npy", header() + TOKENS.tobytes())
    with pytest.raises(InputError, match="mine has two arrays with the name 'a'"):
        zipped_arrays(content.getvalue(), "mine")
    with pytest.raises(InputError, match="mine has two arrays with the name 'a'"):
        zipped_arrays(zipped(**{"a": b"", "a.npy": header() + TOKENS.tobytes()}), "mine")


def test_names_that_are_paths_write_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "inner").mkdir()
    monkeypatch.chdir(tmp_path / "inner")
    data = header() + TOKENS.tobytes()
    names = ("../up.npy", "/tmp/absolute-of-a-test.npy", "a/b.npy", "..\\back.npy")
    found = zipped_arrays(zipped(**dict.fromkeys(names, data)), "mine")
    assert len(found) == len(names), "a name is a name and no place"
    assert [path.name for path in tmp_path.rglob("*")] == ["inner"]
    assert not Path("/tmp/absolute-of-a-test.npy").exists()


def test_a_locked_member_is_one_sentence() -> None:
    content = bytearray(zipped(**{"a.npy": header() + TOKENS.tobytes()}))
    for signature, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.index(signature) + flags] |= 1  # encrypted
    with pytest.raises(InputError, match=r"mine is not a plain \.npz file: .*is encrypt"):
        zipped_arrays(bytes(content), "mine")


def peak(content: bytes) -> int:
    tracemalloc.start()
    try:
        with pytest.raises(InputError) as rejection:
            zipped_arrays(content, "mine")
        assert "\n" not in str(rejection.value)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_bomb_is_not_unpacked() -> None:
    bomb = zipped(zipfile.ZIP_DEFLATED, **{"a.npy": header(shape="(1,)") + bytes(2**26)})
    assert len(bomb) < 2**18
    assert peak(bomb) < 2**22, "64 MiB behind an array of one number"


def test_a_bomb_that_says_how_large_it_is_is_not_opened() -> None:
    content = bytearray(zipped(zipfile.ZIP_DEFLATED, **{"a.npy": header() + TOKENS.tobytes()}))
    place = content.index(b"PK\x01\x02") + 24
    content[place : place + 4] = (MAX_UNPACKED + 1).to_bytes(4, "little")
    with pytest.raises(InputError, match="mine may unpack to at most 1,073,741,824 bytes, got 1073741825"):
        zipped_arrays(bytes(content), "mine")


def test_a_bomb_that_says_it_is_small_ends_where_it_says() -> None:
    """The directory promises what an array of six numbers takes, and 64 MiB follow."""
    data = header() + TOKENS.tobytes()
    content = bytearray(zipped(zipfile.ZIP_DEFLATED, **{"a.npy": data + bytes(2**26)}))
    place = content.index(b"PK\x01\x02") + 24
    content[place : place + 4] = len(data).to_bytes(4, "little")
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=r"mine is not a plain \.npz file: .*CRC"):
            zipped_arrays(bytes(content), "mine")
        assert tracemalloc.get_traced_memory()[1] < 2**22
    finally:
        tracemalloc.stop()


def test_a_directory_of_very_many_entries_is_not_read() -> None:
    content = zipped(**{f"{i}.npy": b"" for i in range(3000)})
    assert peak(content) < 2**14, "each entry of a directory takes more than 300 bytes when it is read"
    chance = np.frombuffer(b"PK\x01\x02" * 1000, dtype=np.int32)
    assert np.array_equal(zipped_arrays(npz(a=chance), "mine")["a"], chance), "marks in an array are none"


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_only_what_numpy_writes_is_unpacked(method: int) -> None:
    """An LZMA stream asks for a dictionary of any size, and its errors are of a kind of their own."""
    packed = zipped(method, **{"a.npy": header() + TOKENS.tobytes()})
    rule = f"the array 'a.npy' in mine must be stored or deflated, as numpy does, got method {method}"
    with pytest.raises(InputError, match=rule):
        zipped_arrays(packed, "mine")


def test_a_pickle_is_never_loaded(tmp_path: Path) -> None:
    class Explosive:
        def __reduce__(self):
            return (Path.write_text, (tmp_path / "exploded", "boom"))

    content = io.BytesIO()
    np.savez(content, answers=np.array([Explosive()], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match="is pickled, and no pickle is loaded: save plain numbers"):
        zipped_arrays(content.getvalue(), "mine")
    assert not (tmp_path / "exploded").exists()
