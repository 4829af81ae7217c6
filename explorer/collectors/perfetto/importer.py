"""Import of Perfetto protobuf traces: slices, instants, counters and flows of track events, as rocprofv3 and PyTorch write them.

Kernel scheduling, memory dumps and other data sources of Android and Chrome are not read; their packets are counted by type.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any

from explorer.collectors.call_stacks import Frame
from explorer.collectors.device_work import call_category, work_category
from explorer.collectors.import_session import ImportSession
from explorer.collectors.options import DEFAULTS, ImportOptions
from explorer.collectors.perfetto import packets
from explorer.collectors.perfetto.packets import Sequence, Track, TrackEvent
from explorer.collectors.row_buffer import attributes_json
from explorer.collectors.source import Source
from explorer.collectors.source_content import read_content
from explorer.collectors.step_name import step_of
from explorer.collectors.wire import WireError, fields
from explorer.model.errors import InputError

if TYPE_CHECKING:
    from explorer.store.writer import RunWriter

NAME = "perfetto"
_PACKET_FIELDS = {2, 5, 6, 8, 10, 11, 12, 13, 33, 35, 36, 41, 42, 43, 44, 50, 58, 59, 60, 69, 87, 89}
_DEVICE = re.compile(r"\b(?:gpu|device|agent)\b\D{0,4}(\d+)", re.IGNORECASE)
_STREAM = re.compile(r"\b(?:stream|queue)\b\D{0,4}(\d+)", re.IGNORECASE)
_DEVICE_CATEGORIES = {
    "kernel": "kernel",
    "kernel_dispatch": "kernel",
    "gpu_memcpy": "copy",
    "memory_copy": "copy",
}
_DEVICE_CATEGORIES |= {"gpu_memset": "fill", "cuda_sync": "sync"}
_HOST_CATEGORIES = {
    "cpu_op": "op",
    "python_function": "python",
    "user_annotation": "annotation",
    "overhead": "overhead",
}
_HOST_CATEGORIES |= dict.fromkeys(
    ("cuda_runtime", "cuda_driver", "hip_api", "hsa_api", "hip_runtime_api"), "runtime"
)
_HOST_CATEGORIES |= dict.fromkeys(("marker_api",), "annotation")
_CORRELATIONS = ("correlation", "correlation_id", "corr_id", "stack_id")


def recognises(source: Source) -> bool:
    """The file begins with packets (field 1) that hold only fields of TracePacket."""
    head = source.head
    if head[:1] != b"\x0a":
        return False
    seen = 0
    try:
        for number, _, _, content in fields(memoryview(head)):
            if number != 1 or content is None:
                return False
            if any(inner not in _PACKET_FIELDS for inner, _, _, _ in fields(content)) and seen < 4:
                return False
            seen += 1
    except WireError:
        pass
    return seen > 0


def import_source(source: Source, writer: RunWriter, options: ImportOptions = DEFAULTS) -> None:
    """Read the track events of a trace. Raises InputError when it holds none."""
    content = read_content(source)
    session = ImportSession(writer, source, NAME, options)
    reading = _Trace(session)
    damage = content.damage
    try:
        for packet in packets.packets(memoryview(content.data)):
            reading.packet(packet)
    except (WireError, ValueError) as error:
        damage = damage or str(error)
    if not reading.rows:
        raise InputError(
            f"{source.path} holds no track events.", "Only traces of the track_event data source are read."
        )
    reading.finish()
    if damage:
        session.lost("the trace", damage)
    session.close()


class _Trace:
    def __init__(self, session: ImportSession) -> None:
        self.session = session
        self.rows = 0
        self._sequences: dict[int, Sequence] = {}
        self._tracks: dict[int, Track] = {}
        self._open: dict[int, list[TrackEvent]] = {}
        self._done: list[tuple[TrackEvent, int]] = []
        self._other: Counter[int] = Counter()
        self._last = 0
        self._totals: dict[int, float] = {}
        self._flow_sources: dict[int, int] = {}

    def packet(self, data: memoryview) -> None:
        """Take one packet."""
        parts: dict[int, Any] = {}
        for number, _, value, content in fields(data):
            parts[number] = value if content is None else content
        sequence = self._sequences.setdefault(parts.get(10, 0), Sequence())
        if parts.get(41) or int(parts.get(13, 0)) & 1:
            sequence.clear()
        if isinstance(parts.get(59), memoryview):
            for number, _, value, content in fields(parts[59]):
                if number == 58:
                    sequence.clock = value
                elif number == 11 and content is not None:
                    sequence.default_track = next((v for n, _, v, _ in fields(content) if n == 11), None)
        if isinstance(parts.get(12), memoryview):
            packets.intern(sequence, parts[12])
        if isinstance(parts.get(60), memoryview):
            track = packets.parse_track(parts[60])
            self._tracks[track.uuid] = track
            self.session.merged_rows(1)
        elif isinstance(parts.get(11), memoryview):
            self.rows += 1
            event = packets.parse_event(parts[11], sequence)
            event.timestamp_ns = int(parts.get(8, 0))
            self._take(event)
        else:
            known = next((number for number in parts if number not in (8, 10, 12, 13, 41, 42, 58, 59, 87)), 0)
            self._other[known] += 1

    def _take(self, event: TrackEvent) -> None:
        self._last = max(self._last, event.timestamp_ns)
        track = event.track or 0
        if event.kind == packets.BEGIN:
            self._open.setdefault(track, []).append(event)
        elif event.kind == packets.END:
            stack = self._open.get(track)
            if not stack:
                self.session.quarantine(
                    {"track": track, "timestamp": event.timestamp_ns}, "end_without_begin"
                )
                return
            begin = stack.pop()
            begin.annotations |= event.annotations
            begin.ended_flows += event.ended_flows
            self._done.append((begin, event.timestamp_ns))
            self.session.merged_rows(1)
        elif event.kind == packets.COUNTER:
            self._counter(event)
        else:
            self._done.append((event, event.timestamp_ns))

    def _counter(self, event: TrackEvent) -> None:
        uuid = event.track or 0
        track = self._tracks.get(uuid, Track())
        value = (event.value or 0.0) * track.multiplier
        if track.incremental:
            value = self._totals[uuid] = self._totals.get(uuid, 0.0) + value
        name = track.name or f"counter {uuid}"
        number = self.session.tracks.counter(name, process_id=self._pid(uuid))
        self.session.counter(number, event.timestamp_ns, name, value, track.unit or None)

    def _pid(self, uuid: int) -> int | None:
        for _ in range(32):
            track = self._tracks.get(uuid)
            if track is None:
                return None
            if track.pid is not None:
                return track.pid
            if track.parent is None:
                return None
            uuid = track.parent
        return None

    def finish(self) -> None:
        """Write all slices, close the open ones at the last time seen, resolve flows."""
        for stack in self._open.values():
            for event in stack:
                event.annotations["unfinished"] = True
                self._done.append((event, max(self._last, event.timestamp_ns)))
        self._done.sort(key=lambda item: item[0].timestamp_ns)
        for event, end in self._done:
            self._add(event, end)
        for number, count in sorted(self._other.items()):
            # One row a packet type: their content is of data sources that this importer does not know.
            self.session.source_row("packets", f"packet field {number}", {"field": number, "count": count})
        unread = sum(
            count
            for number, count in self._other.items()
            if number not in (0, 2, 6, 33, 35, 36, 43, 44, 69, 89)
        )
        if unread:
            self.session.writer.health(
                "unread_packets",
                "warning",
                unread,
                f"{unread} packets hold other data than track events (scheduling, GPU counters, heap dumps); they are counted, not read.",
            )
        self.session.writer.health(
            "no_absolute_time",
            "info",
            1,
            "Perfetto traces count time from the machine's start, not from an epoch.",
        )

    def _add(self, event: TrackEvent, end: int) -> None:
        category, on_device = self._category(event)
        fields_ = dict(event.annotations)
        if event.categories:
            fields_["categories"] = event.categories
        correlation = next(
            (value for key in _CORRELATIONS if isinstance(value := fields_.get(key), int)), None
        )
        if correlation is not None and not 0 < correlation < 2**63:
            correlation = None
        line: dict[str, Any] = {}
        if event.location is not None and event.location[0]:
            file, number, function = event.location
            chain = self.session.stacks.stack([Frame(file, number, function)])
            if chain is not None and chain.has_user_code:
                line = {"site_id": chain.site_id, "attribution": "debug_info", "precision": "exact"}
        added = self.session.event(
            track_id=self._track(event, on_device),
            category=category,
            name=event.name or "slice",
            start_ns=event.timestamp_ns,
            duration_ns=end - event.timestamp_ns,
            correlation_id=correlation,
            link=correlation or 0,
            attributes=attributes_json(fields_),
            **line,
        )
        if added is None:
            return
        if category == "step" and (step := step_of(event.name)) is not None:
            self.session.steps.append((step, event.timestamp_ns, end))
        for flow in (*event.flows, *event.ended_flows):
            source = self._flow_sources.get(flow)
            if source is not None:
                self.session.edges.append((source, added, "flow"))
            self._flow_sources[flow] = added
        for flow in event.ended_flows:
            self._flow_sources.pop(flow, None)

    def _category(self, event: TrackEvent) -> tuple[str, bool]:
        for category in event.categories:
            known = category.lower()
            if known in _DEVICE_CATEGORIES:
                ours = _DEVICE_CATEGORIES[known]
                return (work_category(event.name) if ours == "kernel" else ours), True
            if known in _HOST_CATEGORIES:
                ours = _HOST_CATEGORIES[known]
                if step_of(event.name) is not None:
                    return "step", False
                return (call_category(event.name) if ours == "runtime" else ours), False
        return ("step" if step_of(event.name) is not None else "other"), False

    def _track(self, event: TrackEvent, on_device: bool) -> int:
        uuid = event.track or 0
        track = self._tracks.get(uuid, Track(uuid))
        parent = self._tracks.get(track.parent or 0, Track())
        process = self._pid(uuid)
        label = track.thread_name or track.name or track.process_name
        if on_device:
            names = f"{label} {parent.name} {parent.thread_name}"
            device, stream = _DEVICE.search(names), _STREAM.search(names)
            return self.session.tracks.stream(
                "gpu",
                int(device.group(1)) if device else 0,
                int(stream.group(1)) if stream else None,
                label or f"track {uuid}",
                process,
            )
        thread = track.tid if track.tid is not None else None
        return self.session.tracks.thread(
            process, thread, label or f"track {uuid}", track.process_name or parent.process_name or None
        )
