"""The messages of an XSpace, by the field numbers of xplane.proto (openxla/xla, tsl/profiler/protobuf).

XSpace: planes 1, errors 2, warnings 3, hostnames 4. XPlane: id 1, name 2, lines 3, event_metadata 4 (map), stat_metadata 5
(map), stats 6. XLine: id 1, name 2, timestamp_ns 3, events 4, duration_ps 9, display_id 10, display_name 11. XEvent:
metadata_id 1, offset_ps 2, duration_ps 3, stats 4, num_occurrences 5. XStat: metadata_id 1, double 2, uint64 3, int64 4,
str 5, bytes 6, ref 7. XEventMetadata: id 1, name 2, metadata 3, display_name 4, stats 5. XStatMetadata: id 1, name 2.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from explorer.collectors.wire import VARINT, WireError, double, fields, signed, text

Value = int | float | str | bytes
RawStat = tuple[int, int, Value]
"""Metadata id, field number of the value, value"""


@dataclass(slots=True)
class EventKind:
    """XEventMetadata: what events of one kind have in common."""

    name: str = ""
    display_name: str = ""
    stats: list[RawStat] = field(default_factory=list)


@dataclass(slots=True)
class Event:
    """XEvent."""

    kind: int = 0
    offset_ps: int = 0
    duration_ps: int = 0
    occurrences: int | None = None
    stats: list[RawStat] = field(default_factory=list)


@dataclass(slots=True)
class Line:
    """XLine: events of one thread, stream or derived row; `events` parses them one by one."""

    id: int = 0
    name: str = ""
    display_name: str = ""
    timestamp_ns: int = 0
    rest: dict[str, int] = field(default_factory=dict)
    raw: list[memoryview] = field(default_factory=list)

    def events(self) -> Iterator[Event]:
        for data in self.raw:
            yield parse_event(data)


@dataclass(slots=True)
class Plane:
    """XPlane: a host or a device."""

    id: int = 0
    name: str = ""
    lines: list[Line] = field(default_factory=list)
    kinds: dict[int, EventKind] = field(default_factory=dict)
    stat_names: dict[int, str] = field(default_factory=dict)
    stats: list[RawStat] = field(default_factory=list)
    damage: list[str] = field(default_factory=list)

    def values(self, stats: list[RawStat]) -> dict[str, Any]:
        """Stats by name; references are resolved to the name they point at."""
        found: dict[str, Any] = {}
        for key, number, value in stats:
            name = self.stat_names.get(key, f"stat {key}")
            found[name] = self.stat_names.get(int(value), value) if number == 7 else value
        return found


@dataclass(slots=True)
class Space:
    """The parts of an XSpace besides its planes."""

    errors: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    hostnames: list[str] = field(default_factory=list)


def read_planes(data: memoryview, space: Space) -> Iterator[memoryview]:
    """Planes of a file as raw messages; texts of the other fields go into `space`. Raises WireError at damage."""
    lists = {2: space.errors, 3: space.warnings, 4: space.hostnames}
    for number, _, _, content in fields(data, salvage=True):
        if number == 1 and content is not None:
            yield content
        elif number in lists and content is not None:
            lists[number].append(text(content))


def parse_plane(data: memoryview) -> Plane:
    """A plane as far as it can be read; `damage` says what could not."""
    plane = Plane()
    try:
        _fill_plane(plane, data)
    except WireError as error:
        plane.damage.append(str(error))
    return plane


def _fill_plane(plane: Plane, data: memoryview) -> None:
    for number, _, value, content in fields(data, salvage=True):
        if number == 1:
            plane.id = signed(value)
        elif content is None:
            continue
        elif number == 2:
            plane.name = text(content)
        elif number == 3:
            line = Line()
            plane.lines.append(line)
            _fill_line(line, content)
        elif number == 4:
            key, entry = _entry(content)
            plane.kinds[key] = _parse_kind(entry)
        elif number == 5:
            key, entry = _entry(content)
            plane.stat_names[key] = next((text(c) for n, _, _, c in fields(entry) if n == 2), "")
        elif number == 6:
            plane.stats.append(_parse_stat(content))


def _entry(data: memoryview) -> tuple[int, memoryview]:
    key, entry = 0, memoryview(b"")
    for number, _, value, content in fields(data):
        if number == 1:
            key = signed(value)
        elif number == 2 and content is not None:
            entry = content
    return key, entry


def _parse_kind(data: memoryview) -> EventKind:
    kind = EventKind()
    for number, _, _, content in fields(data):
        if content is None:
            continue
        if number == 2:
            kind.name = text(content)
        elif number == 4:
            kind.display_name = text(content)
        elif number == 5:
            kind.stats.append(_parse_stat(content))
    return kind


def _fill_line(line: Line, data: memoryview) -> None:
    for number, _, value, content in fields(data):
        if number == 4 and content is not None:
            line.raw.append(content)
        elif number == 1:
            line.id = signed(value)
        elif number == 2:
            line.name = text(content)
        elif number == 3:
            line.timestamp_ns = signed(value)
        elif number == 11:
            line.display_name = text(content)
        elif number == 9:
            line.rest["duration_ps"] = signed(value)
        elif number == 10:
            line.rest["display_id"] = signed(value)


def parse_event(data: memoryview) -> Event:
    """Raises WireError at damage."""
    event = Event()
    for number, kind, value, content in fields(data):
        if kind == VARINT:
            if number == 1:
                event.kind = signed(value)
            elif number == 2:
                event.offset_ps = signed(value)
            elif number == 3:
                event.duration_ps = signed(value)
            elif number == 5:
                event.occurrences = signed(value)
        elif number == 4 and content is not None:
            event.stats.append(_parse_stat(content))
    return event


def _parse_stat(data: memoryview) -> RawStat:
    key, field_number = 0, 0
    value: Value = 0
    for number, _, bits, content in fields(data):
        if number == 1:
            key = signed(bits)
            continue
        field_number = number
        if number == 2:
            value = double(bits)
        elif number == 4:
            value = signed(bits)
        elif number == 5:
            value = text(content)
        elif number == 6:
            value = bytes(content or b"")
        else:
            value = bits
    return key, field_number, value
