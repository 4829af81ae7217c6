"""Packets of a Perfetto trace, by the field numbers of its published protos (protos/perfetto/trace).

Trace: packet 1. TracePacket: process_tree 2, timestamp 8, trusted_packet_sequence_id 10, track_event 11, interned_data 12,
sequence_flags 13, incremental_state_cleared 41, timestamp_clock_id 58, trace_packet_defaults 59, track_descriptor 60,
compressed_packets 50. TrackEvent: categories 22, category_iids 3, name 23, name_iid 10, type 9, track_uuid 11,
counter_value 30, double_counter_value 44, flow_ids 47, terminating_flow_ids 48, correlation_id 52, debug_annotations 4,
source_location 33, source_location_iid 34, timestamp_delta_us 1, timestamp_absolute_us 16.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from explorer.collectors.wire import FIXED32, FIXED64, VARINT, double, fields, signed, text, varints
from explorer.model.errors import InputError

BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4
MAX_UNPACKED = 1 << 30
MAX_DEPTH = 16
_INTERNED = {1: "category", 2: "name", 3: "annotation_name", 29: "annotation_value", 4: "location"}


@dataclass(slots=True)
class TrackEvent:
    """One TrackEvent with its names resolved."""

    kind: int = 0
    name: str = ""
    categories: list[str] = field(default_factory=list)
    track: int | None = None
    timestamp_ns: int = 0
    value: float | None = None
    flows: list[int] = field(default_factory=list)
    ended_flows: list[int] = field(default_factory=list)
    location: tuple[str, int, str] | None = None
    annotations: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Track:
    """TrackDescriptor, as far as it is used."""

    uuid: int = 0
    parent: int | None = None
    name: str = ""
    pid: int | None = None
    tid: int | None = None
    process_name: str = ""
    thread_name: str = ""
    is_process: bool = False
    is_counter: bool = False
    unit: str = ""
    multiplier: int = 1
    incremental: bool = False


@dataclass(slots=True)
class Sequence:
    """State of one packet sequence: interned texts and defaults."""

    texts: dict[str, dict[int, Any]] = field(default_factory=dict)
    default_track: int | None = None
    clock: int | None = None

    def clear(self) -> None:
        self.texts.clear()
        self.default_track = self.clock = None


def packets(data: memoryview, depth: int = 0) -> Iterator[memoryview]:
    """Every TracePacket, those inside compressed ones too. Raises WireError at damage."""
    for number, _, _, content in fields(data):
        if number != 1 or content is None:
            continue
        if content[:2] in (b"\x92\x03",) and depth < 2:
            for inner, _, _, packed in fields(content):
                if inner == 50 and packed is not None:
                    yield from packets(memoryview(_inflate(packed)), depth + 1)
            continue
        yield content


def _inflate(packed: memoryview) -> bytes:
    stream = zlib.decompressobj()
    found = stream.decompress(packed, MAX_UNPACKED)
    if stream.unconsumed_tail:
        raise InputError("A packet of the trace expands beyond 1 GiB and looks like a decompression bomb.")
    return found


def parse_track(data: memoryview) -> Track:
    """A TrackDescriptor: uuid 1, name 2, static_name 10, process 3, thread 4, parent_uuid 5, counter 8."""
    track = Track()
    for number, _, value, content in fields(data):
        if number == 1:
            track.uuid = value
        elif number == 5:
            track.parent = value
        elif number in (2, 10):
            track.name = text(content)
        elif number == 3 and content is not None:
            track.is_process = True
            for key, _, inner, part in fields(content):
                if key == 1:
                    track.pid = signed(inner)
                elif key == 6:
                    track.process_name = text(part)
        elif number == 4 and content is not None:
            for key, _, inner, part in fields(content):
                if key == 1:
                    track.pid = signed(inner)
                elif key == 2:
                    track.tid = signed(inner)
                elif key == 5:
                    track.thread_name = text(part)
        elif number == 8 and content is not None:
            track.is_counter = True
            for key, _, inner, part in fields(content):
                if key == 3:
                    track.unit = {1: "ns", 2: "count", 3: "bytes"}.get(inner, "")
                elif key == 4:
                    track.multiplier = signed(inner)
                elif key == 5:
                    track.incremental = bool(inner)
                elif key == 6:
                    track.unit = text(part)
    return track


def intern(sequence: Sequence, data: memoryview) -> None:
    """Add an InternedData's names to its sequence."""
    for number, _, _, content in fields(data):
        kind = _INTERNED.get(number)
        if kind is None or content is None:
            continue
        iid, name, location = 0, "", ["", "", 0]
        for key, _, value, part in fields(content):
            if key == 1:
                iid = value
            elif key == 2:
                name = text(part)
                location[0] = name
            elif key == 3:
                location[1] = text(part)
            elif key == 4:
                location[2] = signed(value)
        table = sequence.texts.setdefault(kind, {})
        table[iid] = (location[0], location[2], location[1]) if kind == "location" else name


def parse_event(data: memoryview, sequence: Sequence) -> TrackEvent:
    """A TrackEvent with interned names of its sequence."""
    event = TrackEvent(track=sequence.default_track)
    names = sequence.texts
    for number, kind, value, content in fields(data):
        if number == 9:
            event.kind = value
        elif number == 11:
            event.track = value
        elif number == 23:
            event.name = text(content)
        elif number == 10:
            event.name = names.get("name", {}).get(value, f"name {value}")
        elif number == 22:
            event.categories.append(text(content))
        elif number == 3:
            for iid in varints(content) if content is not None else (value,):
                event.categories.append(names.get("category", {}).get(iid, f"category {iid}"))
        elif number == 30:
            event.value = float(signed(value))
        elif number == 44:
            event.value = double(value)
        elif number in (47, 48, 36, 42):
            flows = event.flows if number in (47, 36) else event.ended_flows
            flows.extend(_numbers(kind, value, content))
        elif number == 4 and content is not None:
            name, found = _annotation(content, names, 0)
            event.annotations[name] = found
        elif number == 33 and content is not None:
            parts = {key: (part, inner) for key, _, inner, part in fields(content)}
            event.location = (
                text(parts.get(2, (None, 0))[0]),
                signed(parts.get(4, (None, 0))[1]),
                text(parts.get(3, (None, 0))[0]),
            )
        elif number == 34:
            event.location = names.get("location", {}).get(value)
        elif number == 52:
            event.annotations["correlation_id"] = value
    return event


def _numbers(kind: int, value: int, content: memoryview | None) -> Iterator[int]:
    if kind in (VARINT, FIXED64, FIXED32) or content is None:
        yield value
        return
    # Packed fixed64.
    for place in range(0, len(content) - 7, 8):
        yield int.from_bytes(content[place : place + 8], "little")


def _annotation(data: memoryview, names: dict[str, dict[int, Any]], depth: int) -> tuple[str, Any]:
    """A DebugAnnotation: name and value; dictionaries and lists up to a depth."""
    name: str = ""
    found: Any = None
    entries: dict[str, Any] = {}
    items: list[Any] = []
    for number, _, value, content in fields(data):
        if number == 1:
            name = names.get("annotation_name", {}).get(value, f"annotation {value}")
        elif number == 10:
            name = text(content)
        elif number == 2:
            found = bool(value)
        elif number in (3, 7):
            found = value
        elif number == 4:
            found = signed(value)
        elif number == 5:
            found = double(value)
        elif number in (6, 9):
            found = text(content)
        elif number == 17:
            found = names.get("annotation_value", {}).get(value, value)
        elif number in (11, 12) and content is not None and depth < MAX_DEPTH:
            key, inner = _annotation(content, names, depth + 1)
            if number == 11:
                entries[key] = inner
            else:
                items.append(inner)
    return name, entries or items or found
