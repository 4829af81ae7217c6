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
_ESCAPE_BYTES = 6
_ATTEMPTS = 8
"""How often a beginning that cannot be read either is made shorter"""


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
    text = text.decode("utf-8", "replace").encode()
    value, problem = _tolerant(text)
    if problem is None:
        return Document(value, "it holds characters or numbers that JSON does not allow")
    found, beginning = problem, text[: problem.place]
    for _ in range(_ATTEMPTS):
        closed, end = _closed(beginning)
        if closed is None:
            break
        value, again = _tolerant(closed)
        if again is None:
            cut = found.place is None or found.place >= len(text.rstrip()) - _ESCAPE_BYTES or found.is_open
            return Document(value, "it ends early" if cut else f"it cannot be read from byte {end:,} on", end)
        beginning = text[: min(end - 1, again.place or end)]
    raise InputError(f"{path} is no readable JSON: {found.message}.", "Is the file complete?")


@dataclass(frozen=True, slots=True)
class _Problem:
    """Why a text is no JSON, and the byte where that shows (None: unknown); `is_open` where a string is never closed."""

    message: str
    place: int | None = None
    is_open: bool = False


def _tolerant(text: bytes) -> tuple[Any, _Problem | None]:
    try:
        return json.loads(text, strict=False), None
    except json.JSONDecodeError as error:
        place = len(error.doc[: error.pos].encode())
        return None, _Problem(str(error), place, error.msg.startswith("Unterminated string"))
    except (ValueError, RecursionError) as error:
        return None, _Problem(str(error) or type(error).__name__)


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
