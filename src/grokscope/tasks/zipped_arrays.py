"""An .npz file that is not trusted: every size is checked before anything of that size is allocated."""

import io
import zipfile
import zlib
from math import prod
from typing import Any

import numpy as np

from grokscope.errors import InputError, require, shown
from grokscope.tasks.row_arrays import MAX_NUMBERS

__all__ = ["zipped_arrays"]

MAX_MEMBERS = 64
MAX_UNPACKED = 8 * MAX_NUMBERS  # bytes
HEADER = 2**16  # bytes in which an array says its type and shape
KINDS = "biuf"
ENTRY = b"PK\x01\x02"  # begins each entry of a zip's directory
MAX_ENTRIES = 1024  # marks of an entry: arrays may contain some by chance
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # what numpy writes


def zipped_arrays(content: bytes, what: str) -> dict[str, np.ndarray]:
    """The arrays of an .npz file by name.

    No pickle is read: an array of objects is rejected by its header. The zip's directory says how large each member is;
    a member that says more than is allowed, or whose array would be larger than the member, is never unpacked.
    """
    # The directory is read whole, and may have millions of entries.
    entries = content.count(ENTRY)
    require(entries <= MAX_ENTRIES, f"{what} may hold at most {MAX_MEMBERS} arrays", entries)
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.infolist()
            require(len(members) <= MAX_MEMBERS, f"{what} may hold at most {MAX_MEMBERS} arrays", len(members))
            total = sum(member.file_size for member in members)
            require(total <= MAX_UNPACKED, f"{what} may unpack to at most {MAX_UNPACKED:,} bytes", total)
            names = [member.filename.removesuffix(".npy") for member in members]
            twice = next((name for name in names if names.count(name) > 1), None)
            require(twice is None, f"{what} has two arrays with the name {shown(twice)}")
            return {name: _array(archive, member, what) for name, member in zip(names, members, strict=True)}
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError) as error:
        raise InputError(f"{what} is not a plain .npz file: {shown(str(error))}") from None


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo, what: str) -> np.ndarray:
    named = f"the array {shown(member.filename)} in {what}"
    require(member.filename.endswith(".npy"), f"{named} must be an .npy array")
    plain = member.compress_type in METHODS
    require(plain, f"{named} must be stored or deflated, as numpy does, got method {member.compress_type}")
    with archive.open(member) as stream:
        head = io.BytesIO(stream.read(min(HEADER, member.file_size)))
        shape, is_fortran, dtype = _header(head, named)
        size = prod(shape) * dtype.itemsize
        begin = head.tell()
        if begin + size != member.file_size:
            raise InputError(f"{named} says it has {size:,} bytes, and {member.file_size - begin:,} are stored")
        rest = head.getvalue()[begin:] + stream.read(member.file_size)
    flat = np.frombuffer(rest, dtype=dtype)
    return flat.reshape(shape, order="F" if is_fortran else "C")


def _header(head: io.BytesIO, named: str) -> tuple[tuple[int, ...], bool, Any]:
    """Shape, order and type of an array of numbers."""
    try:
        major, _ = np.lib.format.read_magic(head)
        read = np.lib.format.read_array_header_1_0 if major == 1 else np.lib.format.read_array_header_2_0
        shape, is_fortran, dtype = read(head)
    except Exception as error:  # numpy reads the header as Python: a bad one fails in any way in which Python can
        raise InputError(f"{named} has no header of a plain array: {shown(str(error))}") from None
    if dtype.hasobject:
        raise InputError(f"{named} is pickled, and no pickle is loaded: save plain numbers")
    require(dtype.kind in KINDS, f"{named} must hold numbers", str(dtype))
    require(all(length >= 0 for length in shape), f"{named} has a negative length", shape)
    # Each length too: that of an empty array may be anything.
    require(max(prod(shape), *shape, 0) <= MAX_NUMBERS, f"{named} may have at most {MAX_NUMBERS:,} numbers", shape)
    return shape, is_fortran, dtype
