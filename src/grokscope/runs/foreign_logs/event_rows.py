"""Scalars of TensorBoard's event files, without TensorBoard.

An event file is a sequence of records: length (8 bytes), its masked CRC-32C (4), the event, the event's CRC (4). An
event is a protocol-buffer message, of which two fields are read: the step (2), and in the summary (5) each value's
tag (1) with its simple_value (2) or the one number of its tensor (8). The length is checked by its CRC; a record that
is cut off ends the file.
"""

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from grokscope.errors import InputError
from grokscope.files import DamagedError, named, open_file

__all__ = ["event_rows", "is_event_file"]

LARGEST_EVENT = 64 * 2**20  # images are skipped, not read into rows
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
FLOAT_TENSOR, DOUBLE_TENSOR = 1, 2  # data types of a TensorProto


def event_rows(path: Path) -> Iterator[dict[str, Any]]:
    """One row for each event with scalars: its step and its tags."""
    try:
        with os.fdopen(open_file(path, follow_links=True), "rb") as file:
            for event in _records(file, path):
                if row := _scalars(event):
                    yield row
    except FileNotFoundError:
        raise InputError(f"there is no file {named(path)}") from None
    except DamagedError as error:
        raise InputError(str(error)) from None


def is_event_file(path: Path) -> bool:
    """Whether a file's name is one that TensorBoard's writers give.

    >>> is_event_file(Path("logs/events.out.tfevents.1700000000.host"))
    True
    """
    return "tfevents" in path.name


def _records(file: BinaryIO, path: Path) -> Iterator[bytes]:
    while len(head := file.read(12)) == 12:
        length, checksum = struct.unpack("<QI", head)
        if _masked_crc(head[:8]) != checksum or length > LARGEST_EVENT:
            raise InputError(f"{named(path)} is no event file of TensorBoard, or is damaged")
        event = file.read(length)
        if len(event) < length or len(file.read(4)) < 4:
            return  # the program that wrote it was ended
        yield event


def _scalars(event: bytes) -> dict[str, Any]:
    found: dict[str, Any] = {}
    step = 0
    try:
        for field, value in _fields(event):
            if field == 2 and isinstance(value, int):
                step = value
            elif field == 5 and isinstance(value, bytes):
                for inner, content in _fields(value):
                    if inner == 1 and isinstance(content, bytes):
                        found |= _tagged(content)
    except (IndexError, struct.error):
        return {}
    return {"step": step, **found} if found else {}


def _tagged(content: bytes) -> dict[str, float]:
    tag, number = "", None
    for field, value in _fields(content):
        if field == 1 and isinstance(value, bytes):
            tag = value.decode(errors="replace")
        elif field == 2 and isinstance(value, float):
            number = value
        elif field == 8 and isinstance(value, bytes):
            number = _tensor_number(value)
    return {} if number is None or tag == "step" else {tag: number}


def _tensor_number(content: bytes) -> float | None:
    """The value of a TensorProto that holds one number."""
    kind, sizes = 0, {FLOAT_TENSOR: (4, "<f"), DOUBLE_TENSOR: (8, "<d")}
    for field, value in _fields(content):
        if field == 1 and isinstance(value, int):
            kind = value
        elif field == 5 and isinstance(value, float):  # float_val, not packed
            return value
        elif field in (4, 5, 6) and isinstance(value, bytes) and kind in sizes:
            size, form = sizes[kind]
            return float(struct.unpack(form, value)[0]) if len(value) == size else None
    return None


def _fields(message: bytes) -> Iterator[tuple[int, int | float | bytes]]:
    place = 0
    while place < len(message):
        key, place = _varint(message, place)
        field, kind = key >> 3, key & 7
        if kind == VARINT:
            number, place = _varint(message, place)
            yield field, number
        elif kind == BYTES:
            length, place = _varint(message, place)
            yield field, message[place : place + length]
            place += length
        elif kind in (FIXED32, FIXED64):
            size, form = (4, "<f") if kind == FIXED32 else (8, "<d")
            yield field, struct.unpack_from(form, message, place)[0]
            place += size
        else:
            return


def _varint(message: bytes, place: int) -> tuple[int, int]:
    number, shift = 0, 0
    while True:
        byte = message[place]
        number |= (byte & 127) << shift
        place, shift = place + 1, shift + 7
        if byte < 128:
            return number, place


def _crc_table() -> list[int]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)  # CRC-32C, reflected
        table.append(byte)
    return table


CRC_TABLE = _crc_table()


def _masked_crc(content: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in content:
        crc = CRC_TABLE[(crc ^ byte) & 255] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
