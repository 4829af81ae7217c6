"""From a stream of bytes to stretches of whole events, in bounded memory, whatever the container looks like."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import msgspec

from explorer.collectors.kineto.repair import repair
from explorer.collectors.kineto.salvage import EVENT_START, Lost, Salvaged, salvage
from explorer.collectors.source import Damaged
from explorer.model.errors import InputError

CHUNK_BYTES = 4 << 20
HEAD_LIMIT_BYTES = 512 << 20
MAX_EVENT_BYTES = 64 << 20
_LOOKED_AT_BYTES = 16 << 20
"""Metadata up to this size is searched for repeated names."""

_RAWS = msgspec.json.Decoder(list[msgspec.Raw])
_EVENTS_KEY = re.compile(rb'"traceEvents"\s*:\s*\[')
_TRAILING = re.compile(r"trailing characters \(byte (\d+)\)")
_BOUNDARY = re.compile(rb"\}\s*,")
_BETWEEN = re.compile(rb"\}\s*,\s*")
_SEPARATORS = b" \t\r\n,\0"
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Chunk:
    """Whole events as the inside of a strict JSON array. `offset` is the byte offset in the decompressed source; with
    `verbatim`, the source holds `text` there unchanged. One that is not `checked` only looks like that."""

    offset: int
    text: bytes
    verbatim: bool = False
    checked: bool = True


@dataclass
class TraceText:
    """The events of a trace in chunks, the other top-level keys, and what was damaged.

    `container` is object or array; `closed` tells whether the events array ended; everything is complete once
    `chunks()` is exhausted.

    Where `reopen` gives the source's blocks from any byte offset, chunks are cut where events seem to meet, and whoever
    decodes them finds out: where one is no JSON, `again_from` it gives chunks that are checked.
    """

    blocks: Iterator[bytes]
    chunk_bytes: int = CHUNK_BYTES
    reopen: Callable[[int], Iterator[bytes]] | None = None
    container: str = ""
    closed: bool = False
    top_level: dict[str, Any] = field(default_factory=dict)
    lost: list[Lost] = field(default_factory=list)
    repairs: Counter[str] = field(default_factory=Counter)
    first_repair: int | None = None
    damage: str = ""
    bytes_read: int = 0
    repeated: tuple[int, int] = (0, 0)
    """Rows with repeated names that readers of the chunks found, and the first byte of the first"""

    def __post_init__(self) -> None:
        self._buffer = b""
        self._offset = 0
        self._ended = False
        self._trusting = self.reopen is not None
        self._opened: tuple[dict[str, Any], Counter[str], int | None] = ({}, Counter(), None)

    def again_from(self, chunk: Chunk) -> Iterator[Chunk]:
        """The chunks from an unchecked one on, cut anew and checked; what was found out behind its start is forgotten."""
        assert self.reopen is not None
        self.blocks = self.reopen(chunk.offset)
        self._buffer, self._offset, self._ended, self._trusting = b"", chunk.offset, False, False
        self.bytes_read = chunk.offset
        top_level, repairs, self.first_repair = self._opened
        self.top_level, self.repairs = dict(top_level), Counter(repairs)
        self.lost.clear()
        self.damage = ""
        return self._rest()

    def _more(self, wanted: int) -> None:
        """Fill the buffer to `wanted` bytes, or to the end of the input."""
        if self._ended or len(self._buffer) >= wanted:
            return
        parts, size = [self._buffer], len(self._buffer)
        try:
            while size < wanted:
                block = next(self.blocks, b"")
                if not block:
                    self._ended = True
                    break
                parts.append(block)
                size += len(block)
                self.bytes_read += len(block)
        except Damaged as error:
            self._ended = True
            self.damage = str(error)
        self._buffer = b"".join(parts)

    def _drop(self, count: int) -> None:
        self._buffer = self._buffer[count:]
        self._offset += count

    def chunks(self) -> Iterator[Chunk]:
        """Raises InputError when the text is no JSON, or holds no events array."""
        self._open()
        if self.lost:
            self._trusting = False
        self._opened = (dict(self.top_level), Counter(self.repairs), self.first_repair)
        yield from self._rest()

    def _rest(self) -> Iterator[Chunk]:
        while True:
            yield from self._events()
            if self.container == "array":
                self._more(1)
                rest = self._buffer.strip(b" \t\r\n\0")
                if rest:
                    self.lost.append(Lost(self._offset, rest, "after_the_end"))
                return
            if not self._again():
                return

    def _open(self) -> None:
        self._more(1 << 16)
        if self._buffer.startswith(_BOM):
            self._drop(len(_BOM))
            self.repairs["byte_order_mark"] += 1
            self.first_repair = 0
        self._drop(len(self._buffer) - len(self._buffer.lstrip()))
        first = self._buffer[:1]
        if first == b"[":
            self.container = "array"
            self._drop(1)
            return
        if first != b"{":
            raise InputError("it is not JSON.", "A Chrome or Kineto trace begins with { or [.")
        self.container = "object"
        found = None
        wanted = 1 << 20
        while (found := _EVENTS_KEY.search(self._buffer)) is None and not self._ended:
            if len(self._buffer) > HEAD_LIMIT_BYTES:
                raise InputError(
                    f"no traceEvents in its first {HEAD_LIMIT_BYTES:,} bytes.", "It may be no trace."
                )
            self._more(wanted)
            wanted *= 2
        if found is None:
            what = "is JSON but no trace (no traceEvents)" if _is_json(self._buffer) else "is not JSON"
            raise InputError(f"it {what}.", "Export it with prof.export_chrome_trace, or check the file.")
        self._members(self._buffer[1 : found.start()], 1)
        self._drop(found.end())

    def _again(self) -> bool:
        """Keys after the events; True when a second events array follows."""
        self._more(HEAD_LIMIT_BYTES)
        found = _EVENTS_KEY.search(self._buffer)
        text = self._buffer[: found.start()] if found else self._buffer
        end = text.rstrip(b" \t\r\n\0")
        if found:
            self._mended("second_event_list", self._offset + found.start())
        if not found and self.closed:
            if end.endswith(b"}"):
                end = end[:-1].rstrip()
                if end.endswith(b","):
                    self._mended("trailing_comma", self._offset + len(end) - 1)
            else:
                self.closed = False
        if self.closed and end.lstrip(b" \t\r\n\0")[:1] not in (b",", b""):
            self._mended("missing_comma", self._offset)
        self._members(end, self._offset)
        self._drop(found.end() if found else len(self._buffer))
        return found is not None

    def _members(self, text: bytes, offset: int) -> None:
        """Top-level members other than the events."""
        text = text.strip(b" \t\r\n,\0")
        if not text:
            return
        wrapped = b"{" + text + b"}"
        try:
            self._metadata(wrapped, offset)
            return
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            pass
        mended = repair(wrapped.decode("utf-8", "replace").encode())
        if mended is not None:
            try:
                self._metadata(mended[0], offset)
                self.repairs.update(mended[1] or {"invalid_utf8": 1})
                self.first_repair = self.first_repair if self.first_repair is not None else offset
                return
            except (msgspec.DecodeError, RecursionError):
                pass
        self.lost.append(Lost(offset, text, "unreadable_metadata"))

    def _metadata(self, text: bytes, offset: int) -> None:
        """Add the members of a JSON object to the top level; of several with one name the last counts, and that is said."""
        found = msgspec.json.decode(text)
        again = len(self.top_level.keys() & found.keys())
        self.top_level.update(found)

        def look(pairs: list[tuple[str, Any]]) -> None:
            nonlocal again
            again += len(pairs) - len({name for name, _ in pairs})

        if len(text) <= _LOOKED_AT_BYTES:
            with suppress(ValueError, RecursionError):
                json.loads(text, object_pairs_hook=look)
        for _ in range(again):
            self._mended("repeated_metadata", offset)

    def _mended(self, kind: str, offset: int) -> None:
        self.repairs[kind] += 1
        if self.first_repair is None:
            self.first_repair = offset

    def _events(self) -> Iterator[Chunk]:
        self.closed = False
        wanted = self.chunk_bytes
        while not self.closed:
            self._more(wanted)
            if self._ended and not self._buffer.strip(b" \t\r\n,\0"):
                self._drop(len(self._buffer))
                return
            if self._trusting and not self._ended and (met := self._meeting()):
                text = self._buffer[: met[0]]
                start = self._offset
                self._drop(met[1])
                yield Chunk(start, text, verbatim=True, checked=False)
                continue
            self._trusting = False
            cut, end = self._cut()
            if cut == 0:
                if self._ended or wanted > MAX_EVENT_BYTES:
                    yield from self._salvage(len(self._buffer), force=True)
                    wanted = self.chunk_bytes
                else:
                    wanted *= 2
                continue
            wanted = self.chunk_bytes
            if end is None:
                before = self._offset
                yield from self._salvage(cut, force=False)
                if self._offset == before and not self.closed:
                    wanted = 2 * len(self._buffer)
                    if self._ended or wanted > MAX_EVENT_BYTES:
                        yield from self._salvage(len(self._buffer), force=True)
                        wanted = self.chunk_bytes
                continue
            text = self._buffer[:cut]
            yield from self._chunk(text[:end])
            if text[end : end + 1] == b"]":
                self._drop(end + 1)
                self.closed = True
            else:
                self._drop(cut)

    def _chunk(self, text: bytes) -> Iterator[Chunk]:
        if not text.strip(b" \t\r\n,"):
            return
        verbatim = True
        if not text.isascii():
            try:
                text.decode()
            except UnicodeDecodeError as error:
                self.repairs["invalid_utf8"] += 1
                if self.first_repair is None:
                    self.first_repair = self._offset + error.start
                text = text.decode("utf-8", "replace").encode()
                verbatim = False
        yield Chunk(self._offset, text, verbatim)

    def _meeting(self) -> tuple[int, int] | None:
        """The last place in the buffer where two events seem to meet: the end of the first, the begin of the second."""
        buffer = self._buffer
        position = len(buffer)
        for _ in range(64):
            position = buffer.rfind(b"}", 0, position)
            if position < 0:
                return None
            found = _BETWEEN.match(buffer, position)
            if found is not None and EVENT_START.match(buffer, found.end()):
                good = buffer.isascii() or _is_utf8(buffer[: position + 1])
                return (position + 1, found.end()) if good else None
        return None

    def _cut(self) -> tuple[int, int | None]:
        """A stretch of the buffer that ends between two events: its length with the comma, and the length of its events.

        The second is None where the stretch is not strict JSON; the first is 0 where the buffer holds no whole event.
        """
        buffer = self._buffer
        if self._ended:
            return len(buffer), _array_end(buffer.rstrip(_SEPARATORS))
        position, longest = len(buffer), 0
        for _ in range(16):
            position = buffer.rfind(b"}", 0, position)
            if position < 0:
                return longest, None
            found = _BOUNDARY.match(buffer, position)
            if found is None:
                continue
            longest = longest or found.end()
            end = _array_end(buffer[: position + 1])
            if end is not None:
                return found.end(), end
        return longest, None

    def _salvage(self, cut: int, *, force: bool) -> Iterator[Chunk]:
        text = self._buffer[:cut]
        start = self._offset
        if not text.isascii():
            text = self._utf8(text)
        result: Salvaged = salvage(text, start, at_end=force or (self._ended and cut == len(self._buffer)))
        self.lost += result.lost
        self.repairs.update(result.repairs)
        if self.first_repair is None:
            self.first_repair = result.first_repair
        if result.pieces:
            yield Chunk(start, b",".join(result.pieces))
        if result.closed_at is not None:
            self.closed = True
        self._drop(result.consumed if not force else max(result.consumed, 1))

    def _utf8(self, text: bytes) -> bytes:
        """Invalid bytes become '?' one for one, so that offsets stay true."""
        while True:
            try:
                text.decode()
                return text
            except UnicodeDecodeError as error:
                self.repairs["invalid_utf8"] += 1
                if self.first_repair is None:
                    self.first_repair = self._offset + error.start
                size = error.end - error.start
                text = text[: error.start] + b"?" * size + text[error.end :]


def _array_end(text: bytes) -> int | None:
    """Length of the events in `text`: all of it, or up to the bracket that closes the array; None if not strict JSON."""
    try:
        _RAWS.decode(b"[" + text + b"]")
        return len(text)
    except RecursionError:
        return None
    except msgspec.DecodeError as error:
        found = _TRAILING.search(str(error))
    if found is None:
        return None
    end = text.rfind(b"]", 0, int(found.group(1)) - 2)
    try:
        _RAWS.decode(b"[" + text[: end + 1])
    except (msgspec.DecodeError, RecursionError):
        return None
    return end


def _is_utf8(text: bytes) -> bool:
    if text.isascii():
        return True
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _is_json(text: bytes) -> bool:
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return False
    return True
