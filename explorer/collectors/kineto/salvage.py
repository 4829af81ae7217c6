"""Tolerant reading of a stretch of events that strict JSON refuses: good events are kept, mended or reported one by one."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

import msgspec

from explorer.collectors.kineto.repair import repair

_RAWS = msgspec.json.Decoder(list[msgspec.Raw])
EVENT_START = re.compile(
    rb'\{\s*"(?:ph|name|cat|pid|tid|ts|dur|tdur|tts|id|id2|args|s|bp|sf|cname|scope|stack)"\s*:'
)
MERGE_PIECES = 6
"""An event is cut at most into so many pieces by objects inside it that look like event starts."""
_SEPARATORS = b" \t\r\n,"
_COMMA = ord(",")
_MEMBER = re.compile(rb'\s*,\s*"[^"]*"\s*:')
_END = re.compile(rb"\s*\}?[\s\0]*\Z")
_TRAILING = re.compile(r"trailing characters \(byte (\d+)\)")


@dataclass(slots=True)
class Lost:
    """A stretch of the source that no event could be read from."""

    offset: int
    text: bytes
    reason: str


@dataclass(slots=True)
class Salvaged:
    """What a stretch yielded. `consumed` bytes are dealt with; `closed_at` is where the array ended, if it did."""

    pieces: list[bytes] = field(default_factory=list)
    lost: list[Lost] = field(default_factory=list)
    repairs: Counter[str] = field(default_factory=Counter)
    first_repair: int | None = None
    consumed: int = 0
    closed_at: int | None = None

    def mend(self, piece: bytes, kinds: Counter[str], offset: int) -> None:
        """Keep a repaired piece."""
        self.pieces.append(piece)
        self.repairs.update(kinds)
        if self.first_repair is None:
            self.first_repair = offset


def salvage(text: bytes, offset: int, *, at_end: bool) -> Salvaged:
    """Read what can be read from `text`, which begins between two events at byte `offset` of the source.

    Unless `at_end`, an unreadable last event is left for the next call, which sees more text.
    """
    result = Salvaged()
    starts = [match.start() for match in EVENT_START.finditer(text)]
    if not starts:
        starts = [position] if (position := text.find(b"{")) >= 0 else []
    bounds = [*starts, len(text)]
    before = text[: bounds[0]].strip(_SEPARATORS)
    if before:
        if before.startswith(b"]"):
            result.closed_at = text.index(b"]")
            result.consumed = result.closed_at + 1
            return result
        result.lost.append(Lost(offset, before, "not_an_event"))
    index = 0
    while index < len(starts):
        step = _read(text, bounds, index, offset, result, at_end)
        if result.closed_at is not None:
            return result
        if step:
            _commas(text, bounds, index + step, offset, result)
            index += step
            continue
        if not at_end and index + MERGE_PIECES >= len(starts):
            result.consumed = starts[index]
            return result
        piece = text[bounds[index] : bounds[index + 1]]
        last = index + 1 == len(starts)
        result.lost.append(
            Lost(
                offset + bounds[index],
                piece.strip(_SEPARATORS),
                "truncated" if last and at_end else "unreadable",
            )
        )
        index += 1
    result.consumed = len(text)
    return result


def _commas(text: bytes, bounds: list[int], index: int, offset: int, result: Salvaged) -> None:
    """Count what stands between two events where it is not one comma."""
    if index + 1 >= len(bounds):
        return
    place, commas = bounds[index], 0
    while place and text[place - 1] in _SEPARATORS:
        place -= 1
        commas += text[place] == _COMMA
    if commas != 1:
        result.repairs["extra_comma" if commas else "missing_comma"] += 1
        if result.first_repair is None:
            result.first_repair = offset + bounds[index]


def _read(text: bytes, bounds: list[int], index: int, offset: int, result: Salvaged, at_end: bool) -> int:
    """Read the event that starts at `bounds[index]`; the number of pieces it took, or 0."""
    most = min(MERGE_PIECES, len(bounds) - 1 - index)
    for mend in (False, True):
        for count in range(1, most + 1):
            start = bounds[index]
            piece = text[start : bounds[index + count]].rstrip(_SEPARATORS)
            pieces, end = _strict(piece)
            if end is not None and not _ends_array(text, start + end + 1, at_end):
                continue
            if pieces is not None:
                result.pieces += pieces
                if end is not None:
                    result.closed_at = start + end
                    result.consumed = result.closed_at + 1
                return count
            if not mend:
                continue
            if (mended := repair(piece)) is not None:
                result.mend(*mended, offset + start)
                return count
            closing = _closing(piece)
            if closing and not _ends_array(text, start + piece.index(b"]", closing) + 1, at_end):
                continue
            if closing and (mended := repair(piece[:closing])) is not None:
                bracket = piece.index(b"]", closing)
                if b"," in piece[closing:bracket]:
                    mended[1]["trailing_comma"] += 1
                result.mend(*mended, offset + start)
                result.closed_at = start + bracket
                result.consumed = result.closed_at + 1
                return count
    return 0


def _strict(piece: bytes) -> tuple[list[bytes] | None, int | None]:
    """The events of a piece, and where in it the array closes; None where it is not strict JSON."""
    try:
        return [bytes(raw) for raw in _RAWS.decode(b"[" + piece + b"]")], None
    except (msgspec.DecodeError, RecursionError) as error:
        found = _TRAILING.search(str(error))
    if found is None:
        return None, None
    end = piece.rindex(b"]", 0, int(found.group(1)) - 2)
    try:
        return [bytes(raw) for raw in _RAWS.decode(b"[" + piece[: end + 1])], end
    except (msgspec.DecodeError, RecursionError):
        return None, None


def _ends_array(text: bytes, place: int, at_end: bool) -> bool:
    """Whether a bracket before `place` can end the events: another member of the whole follows, or nothing. The bracket of a
    list inside a damaged event is followed by the rest of that event."""
    return _MEMBER.match(text, place) is not None or (at_end and _END.match(text, place) is not None)


def _closing(piece: bytes) -> int | None:
    """Length of the event in a piece that also holds the array's end."""
    found = re.search(rb'\}\s*,?\s*\]\s*(?:\}\s*$|,\s*"[^"]*"\s*:|$)', piece)
    return found.start() + 1 if found else None
