"""Reading one JSON document that may be broken: cut off, with NaN and control characters, in bad UTF-8."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

import msgspec

from explorer.model.errors import InputError

_TOKEN = re.compile(rb'[{}\[\],"]')
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_CLOSERS = {0x7B: b"}", 0x5B: b"]"}
MAX_DEPTH = 200


@dataclass(frozen=True, slots=True)
class Document:
    """A decoded document. `damage` says what was wrong with it, None where nothing was; `offset` where it ended."""

    value: Any
    damage: str | None = None
    offset: int | None = None


def read_document(data: bytes, path: str) -> Document:
    """Decode JSON, tolerantly where it must be. Raises InputError when nothing can be made of it."""
    text = data.removeprefix(b"\xef\xbb\xbf")
    try:
        return Document(msgspec.json.decode(text))
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        pass
    value, damage = _tolerant(text)
    if damage is None:
        return Document(value, "it holds characters or numbers that JSON does not allow")
    closed, end = _closed(text)
    if closed is not None:
        value, problem = _tolerant(closed)
        if problem is None:
            return Document(value, "it ends early", end)
    raise InputError(f"{path} is no readable JSON: {damage}.", "Is the file complete?")


def _tolerant(text: bytes) -> tuple[Any, str | None]:
    try:
        return json.loads(text.decode("utf-8", "replace"), strict=False), None
    except (ValueError, RecursionError) as error:
        return None, str(error) or type(error).__name__


def _closed(text: bytes) -> tuple[bytes | None, int]:
    """The longest beginning that ends behind a whole element, with its open brackets closed."""
    stack: list[int] = []
    good: tuple[int, bytes] | None = None
    place = 0
    while match := _TOKEN.search(text, place):
        byte = text[match.start()]
        if byte == 0x22:
            string = _STRING.match(text, match.start())
            if string is None:
                break
            place = string.end()
            continue
        place = match.end()
        if byte in _CLOSERS:
            stack.append(byte)
            if len(stack) > MAX_DEPTH:
                break
        elif byte == 0x2C:
            good = match.start(), _ending(stack)
        else:
            if not stack or _CLOSERS[stack.pop()][0] != byte:
                break
            good = match.end(), _ending(stack)
    if good is None:
        return None, 0
    return text[: good[0]] + good[1], good[0]


def _ending(stack: list[int]) -> bytes:
    return b"".join(_CLOSERS[byte] for byte in reversed(stack))
