"""Import of XLA profiles (JAX, TensorFlow, torch-xla): planes of hosts and devices, HLO ops with their source lines."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from explorer.collectors.call_stacks import Frame
from explorer.collectors.device_work import call_category, collective_operation, work_category
from explorer.collectors.import_session import ImportSession
from explorer.collectors.options import DEFAULTS, ImportOptions
from explorer.collectors.row_buffer import attributes_json
from explorer.collectors.source import Source
from explorer.collectors.source_content import read_content
from explorer.collectors.wire import WireError, fields
from explorer.collectors.xplane.hlo import Modules
from explorer.collectors.xplane.space import Event, EventKind, Line, Plane, Space, parse_plane, read_planes
from explorer.model.errors import InputError

if TYPE_CHECKING:
    from explorer.store.writer import RunWriter

NAME = "xplane"
_DEVICE = re.compile(r"^/device:(?P<kind>[A-Za-z_]+):(?P<number>\d+)|^#Chip(?P<chip>\d+)")
_STREAM = re.compile(r"^Stream #(\d+)")
_DERIVED = (
    "XLA Modules",
    "Framework Ops",
    "Framework Name Scope",
    "Source code",
    "TensorFlow Ops",
    "TensorFlow Name Scope",
)
_PYTHON = re.compile(r"^\$(?P<file>[^ ]*?\.py):(?P<line>\d+) (?P<function>.+)$")
_RUNTIME = re.compile(r"^(?:hip|cuda|cu[A-Z])\w+$")
_SOURCE = re.compile(r"^(?P<file>.+):(?P<line>\d+)$")
_HLO_WORK = {"copy": "copy", "copy-start": "dma", "copy-done": "sync"}
_HLO_COLLECTIVE = re.compile(
    r"^(?:all-reduce|all-gather|reduce-scatter|all-to-all|collective-|ragged-all|send|recv)"
)
_EPOCH_NS = 10**17
_MEMORY = {"MemoryAllocation": 1, "MemoryDeallocation": -1}


def recognises(source: Source) -> bool:
    """The file begins with a plane (field 1) whose first fields are those of an XPlane."""
    head = source.head
    if head[:1] != b"\x0a":
        return False
    try:
        outer = next(fields(memoryview(head), salvage=True))
        if outer[0] != 1 or outer[3] is None:
            return False
        for number, kind, _, content in fields(outer[3], salvage=True):
            if number == 1 and kind == 0:
                continue
            return (number == 2 and content is not None and bytes(content[:1]) in (b"/", b"#")) or (
                number in (3, 4, 5, 6) and b"/host:" in head
            )
    except (WireError, StopIteration):
        return False
    return False


def import_source(source: Source, writer: RunWriter, options: ImportOptions = DEFAULTS) -> None:
    """Read an XSpace file. Raises InputError when no plane can be read."""
    content = read_content(source)
    session = ImportSession(writer, source, NAME, options)
    space, planes, damage = Space(), [], content.damage
    try:
        for data in read_planes(memoryview(content.data), space):
            planes.append(parse_plane(data))
    except WireError as error:
        damage = damage or str(error)
    if not any(plane.name and (plane.lines or plane.kinds or plane.stats) for plane in planes):
        raise InputError(f"{source.path} holds no readable XPlane.", "Is it a whole .xplane.pb file?")
    reading = _Profile(session, planes)
    reading.read()
    for plane in planes:
        for reason in plane.damage:
            session.lost(f"plane {plane.name}", reason)
    if damage:
        session.lost("the file", damage)
    for kind, texts in (("error", space.errors), ("warning", space.warnings)):
        for text in texts:
            writer.health(f"source_{kind}", "warning", 1, f"The profiler said: {text}")
    if space.hostnames:
        writer.manifest.host["hostname"] = space.hostnames[0]
    session.close()


class _Profile:
    def __init__(self, session: ImportSession, planes: list[Plane]) -> None:
        self.session = session
        self.planes = planes
        self.modules = Modules()
        self.base_ns = 0
        self._files: dict[str, str] = {}
        self._producers: dict[tuple[Any, Any], int] = {}
        self._consumers: list[tuple[tuple[Any, Any], int]] = []

    def read(self) -> None:
        for plane in self.planes:
            if plane.name == "/host:metadata":
                for kind in plane.kinds.values():
                    for _, number, value in kind.stats:
                        if number == 6 and isinstance(value, bytes):
                            self.modules.add(value, kind.name)
        if self.modules.damaged:
            self.session.lost("HLO modules", "they are damaged", self.modules.damaged)
        for file in sorted(self.modules.files()):
            self._files[os.path.basename(file.replace("\\", "/"))] = file
        self._find_base()
        devices = []
        for plane in self.planes:
            if plane.name == "/host:metadata":
                continue
            match = _DEVICE.match(plane.name)
            if match:
                device, row = self._device(plane, match)
                devices.append(row)
                self._device_plane(plane, *device)
            else:
                for line in plane.lines:
                    self._host_line(plane, line)
            if not plane.lines and not match:
                self.session.source_row("metadata", plane.name, plane.values(plane.stats))
        if devices:
            self.session.writer.write("devices", devices)
        for key, target in self._consumers:
            if (source := self._producers.get(key)) is not None:
                self.session.edges.append((source, target, "flow"))

    def _find_base(self) -> None:
        """Line times are relative to the start of the profile when they are small; the environment plane knows it."""
        for plane in self.planes:
            start = plane.values(plane.stats).get("profile_start_time")
            if isinstance(start, int):
                self.base_ns = start
                self.session.writer.manifest.clock.append({"time_ns": start, "source_ns": 0})
                return
        if any(line.timestamp_ns < _EPOCH_NS for plane in self.planes for line in plane.lines if line.raw):
            self.session.writer.health(
                "no_absolute_time", "info", 1, "The profile does not say when it was taken."
            )

    def _device(self, plane: Plane, match: re.Match[str]) -> tuple[tuple[str, int], dict[str, Any]]:
        stats = plane.values(plane.stats)
        vendor = str(stats.get("device_vendor", "")).lower()
        kind = (match["kind"] or "TPU").upper()
        number = int(match["number"] or match["chip"] or 0)
        device_type = (
            {"AMD": "hip", "NVIDIA": "cuda"}.get(vendor.upper(), kind.lower())
            if kind == "GPU"
            else kind.lower()
        )
        bandwidth, memory, cores = (
            stats.get(key) for key in ("memory_bandwidth", "memory_size", "core_count")
        )
        row = {
            "device": f"{device_type}:{number}",
            "name": str(stats.get("device_type_string", "")),
            "vendor": vendor or ("google" if kind == "TPU" else None),
            "memory_bandwidth": float(bandwidth)
            if isinstance(bandwidth, int | float) and bandwidth > 0
            else None,
            "memory_bytes": memory if isinstance(memory, int) else None,
            "unit_count": cores if isinstance(cores, int) and cores < 2**31 else None,
            "attributes": attributes_json(stats),
        }
        return (device_type, number), row

    def _device_plane(self, plane: Plane, device_type: str, number: int) -> None:
        streams = any(_STREAM.match(line.name) for line in plane.lines)
        busy = streams or any(line.name == "XLA Ops" for line in plane.lines)
        for line in plane.lines:
            name = line.display_name or line.name
            match = _STREAM.match(line.name)
            stream = int(match.group(1)) if match else line.id
            track = self.session.tracks.stream(device_type, number, stream, name, process=plane.name)
            work = (
                bool(match)
                or (line.name == "XLA Ops" and not streams)
                or (not busy and line.name not in _DERIVED)
            )
            for event in self._events(plane, line):
                kind = plane.kinds.get(event.kind, EventKind())
                stats = plane.values(kind.stats) | plane.values(event.stats)
                category = "annotation"
                if line.name == "Steps":
                    category = "step"
                elif work or line.name == "Async XLA Ops":
                    category = _device_category(kind, stats)
                self._add(line, event, kind, stats, track, category)

    def _host_line(self, plane: Plane, line: Line) -> None:
        name = line.display_name or line.name
        track = self.session.tracks.thread(plane.id, line.id, name, plane.name)
        for event in self._events(plane, line):
            kind = plane.kinds.get(event.kind, EventKind())
            stats = plane.values(kind.stats) | plane.values(event.stats)
            if kind.name in _MEMORY and isinstance(stats.get("allocation_bytes"), int):
                self._memory(line, event, kind, stats)
            else:
                self._add(line, event, kind, stats, track, _host_category(kind.name, stats))

    def _events(self, plane: Plane, line: Line) -> Any:
        try:
            yield from line.events()
        except WireError as error:
            plane.damage.append(f"line {line.name}: {error}")

    def _times(self, line: Line, event: Event) -> tuple[int, int, bool]:
        """Start and duration in whole ns; whether they are exact. Both ends are rounded down, so events keep touching."""
        base = line.timestamp_ns + (self.base_ns if line.timestamp_ns < _EPOCH_NS else 0)
        start, rest = divmod(event.offset_ps, 1000)
        end = (event.offset_ps + event.duration_ps) // 1000
        return base + start, end - start, rest == 0 and event.duration_ps % 1000 == 0

    def _add(
        self, line: Line, event: Event, kind: EventKind, stats: dict[str, Any], track: int, category: str
    ) -> None:
        start, duration, exact = self._times(line, event)
        fields = {
            key: value for key, value in stats.items() if not isinstance(value, bytes) or len(value) < 4096
        }
        if not exact:
            fields |= {"offset_ps": event.offset_ps, "duration_ps": event.duration_ps}
        if event.occurrences is not None:
            fields["num_occurrences"] = event.occurrences
        if kind.display_name and kind.display_name != kind.name:
            fields["display_name"] = kind.display_name
        correlation = stats.get("correlation_id")
        known = isinstance(correlation, int) and 0 < correlation < 2**63
        name = kind.name or f"event {event.kind}"
        line_columns, shares = self._line(name, stats)
        number = self.session.event(
            track_id=track,
            category=category,
            name=name,
            start_ns=start,
            duration_ns=duration,
            correlation_id=correlation if known else None,
            link=correlation if known else 0,
            flops=_count(stats.get("flops", stats.get("model_flops"))),
            size_bytes=_count(stats.get("bytes_accessed")),
            attributes=attributes_json(fields),
            **line_columns,
        )
        if number is None:
            return
        self.session.event_sites += [
            {"event_id": number, "site_id": site, "role": "responsible", "share": share}
            for site, share in shares.items()
        ]
        if category == "collective":
            self.session.collectives.append(
                {"event_id": number, "side": "device", "operation": collective_operation(name)}
            )
        if category == "step":
            step = stats.get("step_num", stats.get("group_id", name if name.isdecimal() else None))
            digits = str(step)
            if digits.isdecimal() and int(digits) < 2**31:
                self.session.steps.append((int(digits), start, start + duration))
        if "_p" in stats:
            self._producers[stats.get("_pt"), stats["_p"]] = number
        if "_c" in stats:
            self._consumers.append(((stats.get("_ct"), stats["_c"]), number))

    def _line(self, name: str, stats: dict[str, Any]) -> tuple[dict[str, Any], dict[int, float]]:
        """The source line of an event: of its HLO instruction, its own `source` stat, or of a traced Python call.

        A fusion of several lines has shares by the instructions that each line made; its line is the one with most.
        """
        frames: tuple[Frame, ...] = ()
        lines: tuple[tuple[Frame, int], ...] = ()
        attribution, precision = "debug_info", "exact"
        op, module, program = stats.get("hlo_op"), stats.get("hlo_module"), stats.get("program_id")
        if isinstance(op, str) and isinstance(module, str):
            found = self.modules.find(module, program if isinstance(program, int) else None, op)
            frames, lines = (found.frames, found.lines) if found else ((), ())
        if not frames and (match := _SOURCE.match(str(stats.get("source", "")))):
            frames = (Frame(match["file"], int(match["line"][:9]), ""),)
        if not frames and (match := _PYTHON.match(name)) and (file := self._files.get(match["file"])):
            # The tracer writes bare file names; only those that the compiled programs name in full are known files.
            frames = (Frame(file, int(match["line"][:9]), match["function"]),)
            attribution, precision = "stack", "coarse"
        chain = self.session.stacks.stack(frames)
        if chain is None:
            return {}, {}
        shares: dict[int, float] = {}
        total = sum(count for _, count in lines)
        for frame, count in lines:
            site = self.session.stacks.site(frame)
            shares[site] = shares.get(site, 0.0) + count / total
        site = chain.site_id
        if shares:
            precision = "shared"
            site = max(shares, key=lambda key: (shares[key], key == chain.site_id))
        columns = {
            "site_id": site,
            "stack_id": chain.stack_id,
            "attribution": attribution,
            "precision": precision,
        }
        return columns, shares

    def _memory(self, line: Line, event: Event, kind: EventKind, stats: dict[str, Any]) -> None:
        start, _, _ = self._times(line, event)
        sign = _MEMORY[kind.name]
        allocator = str(stats.get("allocator_name", ""))
        match = re.search(r"GPU_(\d+)", allocator)
        self.session.memory_event(
            start,
            "alloc" if sign > 0 else "free",
            stats.pop("addr") if isinstance(stats.get("addr"), int) else None,
            sign * int(stats.pop("allocation_bytes")),
            f"gpu:{match.group(1)}" if match else "cpu" if "host" in allocator else allocator or "unknown",
            allocated_bytes=_count(stats.get("bytes_allocated")),
            reserved_bytes=_count(stats.get("bytes_reserved")),
            attributes={**stats, "line": line.name},
        )


def _count(value: Any) -> int | None:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and 0 <= value < 2**63 else None


def _device_category(kind: EventKind, stats: dict[str, Any]) -> str:
    hlo = str(stats.get("hlo_category", "") or kind.display_name or kind.name).lower()
    if _HLO_COLLECTIVE.match(hlo):
        return "collective"
    for prefix, category in _HLO_WORK.items():
        if hlo == prefix:
            return category
    if "memcpy_details" in stats:
        return "copy"
    if "memset_details" in stats:
        return "fill"
    return work_category(kind.name)


def _host_category(name: str, stats: dict[str, Any]) -> str:
    if name.startswith("$"):
        return "python"
    if "step_num" in stats:
        return "step"
    if _RUNTIME.match(name):
        return call_category(name)
    if name.startswith("PjitFunction("):
        return "op"
    if "compile" in name.lower():
        return "compile"
    return "annotation"
