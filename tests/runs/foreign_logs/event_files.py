"""Event files as TensorBoard's writers make them, written from the format's description."""

import struct

__all__ = ["event_file", "scalar", "tensor"]


def crc32c(content: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in content:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ 0x82F63B78 * (crc & 1)
    return crc ^ 0xFFFFFFFF


def masked(content: bytes) -> int:
    crc = crc32c(content)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def varint(number: int) -> bytes:
    found = b""
    while number > 127:
        found, number = found + bytes([number & 127 | 128]), number >> 7
    return found + bytes([number])


def part(field: int, content: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(content)) + content


def scalar(tag: str, value: float) -> bytes:
    return part(1, part(1, tag.encode()) + varint(2 << 3 | 5) + struct.pack("<f", value))


def tensor(tag: str, value: float) -> bytes:
    inside = varint(1 << 3) + varint(1) + part(2, b"") + part(4, struct.pack("<f", value))
    return part(1, part(1, tag.encode()) + part(9, b"\x0a\x00") + part(8, inside))


def event_file(rows: list[tuple[int, bytes]]) -> bytes:
    begin = b"\x09" + struct.pack("<d", 1.7e9)
    events = [begin + part(3, b"brain.Event:2")]
    events += [begin + varint(2 << 3) + varint(step) + part(5, summary) for step, summary in rows]
    return b"".join(
        (head := struct.pack("<Q", len(event))) + struct.pack("<I", masked(head)) + event
        + struct.pack("<I", masked(event))
        for event in events
    )  # fmt: skip
