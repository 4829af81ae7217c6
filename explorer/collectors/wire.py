"""Protocol Buffers wire format: walking the fields of a message without a compiled schema.

After the public encoding guide of Protocol Buffers: a field is a varint tag (number << 3 | wire type) and its value.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
_double, _float = struct.Struct("<d"), struct.Struct("<f")

Field = tuple[int, int, int, memoryview | None]
"""Number, wire type, value (the integer, the raw bits of a fixed field, or 0) and the bytes of a length-delimited one"""


class WireError(ValueError):
    """The message is cut off or malformed. `offset` is the place inside the message."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(f"{message} at byte {offset}")
        self.offset = offset


def fields(data: memoryview, *, salvage: bool = False) -> Iterator[Field]:
    """The fields of one message, in order.

    Raises WireError at damage; fields before it are good. With `salvage`, a length-delimited field that is cut off by
    the end of the message is given as far as it goes before the error.
    """
    place, end = 0, len(data)
    while place < end:
        start = place
        tag = data[place]
        place += 1
        if tag >= 0x80:
            tag, place = _varint(data, place - 1, end)
        number, kind = tag >> 3, tag & 7
        if number == 0:
            raise WireError("field number 0", start)
        if kind == VARINT:
            if place >= end:
                raise WireError("a field ends early", start)
            value = data[place]
            place += 1
            if value >= 0x80:
                value, place = _varint(data, place - 1, end)
            yield number, kind, value, None
        elif kind == LENGTH:
            size, place = _varint(data, place, end)
            if place + size > end:
                if salvage:
                    yield number, kind, 0, data[place:]
                raise WireError(f"a field of {size} bytes ends early", start)
            yield number, kind, 0, data[place : place + size]
            place += size
        elif kind in (FIXED64, FIXED32):
            width = 8 if kind == FIXED64 else 4
            if place + width > end:
                raise WireError("a field ends early", start)
            yield number, kind, int.from_bytes(data[place : place + width], "little"), None
            place += width
        else:
            raise WireError(f"unknown wire type {kind}", start)


def _varint(data: memoryview, place: int, end: int) -> tuple[int, int]:
    value = shift = 0
    start = place
    while place < end:
        byte = data[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, place
        shift += 7
        if shift > 63:
            raise WireError("a number is longer than 64 bits", start)
    raise WireError("a number ends early", start)


def signed(value: int) -> int:
    """int64 of a varint's 64 bits."""
    return value - (1 << 64) if value >= 1 << 63 else value


def double(bits: int) -> float:
    """The float64 with these bits."""
    return float(_double.unpack(bits.to_bytes(8, "little"))[0])


def text(data: memoryview | None) -> str:
    """UTF-8 text; bad bytes are replaced."""
    return bytes(data or b"").decode("utf-8", "replace")


def varints(data: memoryview) -> Iterator[int]:
    """The values of a packed repeated varint field."""
    place, end = 0, len(data)
    while place < end:
        value, place = _varint(data, place, end)
        yield value
