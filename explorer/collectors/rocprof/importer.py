"""Import of rocprofv3 JSON (rocprofv3 --output-format json): dispatches, copies, API calls, markers, counters.

The record layout is that of the ROCprofiler-SDK tool: every record of `buffer_records` has a kind and an operation, whose
names stand in `strings`, and a correlation id that API call and device work share.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from explorer.collectors.device_work import call_category, collective_operation, work_category
from explorer.collectors.import_session import ImportSession
from explorer.collectors.json_document import Document, read_document
from explorer.collectors.options import DEFAULTS, ImportOptions
from explorer.collectors.row_buffer import attributes_json
from explorer.collectors.source import Source
from explorer.collectors.source_content import read_content
from explorer.model.errors import InputError

if TYPE_CHECKING:
    from explorer.store.writer import RunWriter

NAME = "rocprofv3"
KEY = "rocprofiler-sdk-tool"
_GPU = 2
_API = {"hip_api": "runtime", "hsa_api": "runtime", "rccl_api": "collective", "marker_api": "annotation"}
_API |= {
    "rocdecode_api": "runtime",
    "rocjpeg_api": "runtime",
    "hip_runtime_api": "runtime",
    "hip_compiler_api": "runtime",
}
_RESOURCES = ("arch_vgpr_count", "accum_vgpr_count", "sgpr_count", "code_object_id", "kernel_id")
_TIMES = ("start_timestamp", "end_timestamp")


def recognises(source: Source) -> bool:
    """A JSON object whose first key is the tool's name."""
    return (
        source.head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{"
        and f'"{KEY}"'.encode() in source.head[:4096]
    )


def import_source(source: Source, writer: RunWriter, options: ImportOptions = DEFAULTS) -> None:
    """Read a result file; one with several processes becomes one rank with several processes."""
    document = _document(read_content(source).data, source.path)
    tools = document.value.get(KEY) if isinstance(document.value, dict) else None
    if isinstance(tools, dict):
        tools = [tools]
    if not isinstance(tools, list) or not any(isinstance(tool, dict) for tool in tools):
        raise InputError(f"{source.path} holds no rocprofv3 records.")
    session = ImportSession(writer, source, NAME, options)
    for tool in tools:
        if isinstance(tool, dict):
            _Tool(session, tool).read()
        else:
            session.quarantine({"tool": tool}, "no_record")
    if document.damage:
        session.lost("the file", document.damage, offset=document.offset)
    writer.health(
        "no_absolute_time", "info", 1, "rocprofv3 counts time from the machine's start, not from an epoch."
    )
    session.close()


def _document(data: bytes, path: str) -> Document:
    """The file with its records still as text, decoded one by one later; a broken file is decoded whole.

    Decoded at once, records take about ten times the file's size.
    """
    try:
        outer = msgspec.json.decode(data, type=dict[str, list[dict[str, msgspec.Raw]]])
        tools = [{name: _part(name, raw) for name, raw in tool.items()} for tool in outer[KEY]]
    except (msgspec.MsgspecError, KeyError, RecursionError, UnicodeDecodeError):
        return read_document(data, path)
    return Document({KEY: tools})


def _part(name: str, raw: msgspec.Raw) -> Any:
    if name in ("buffer_records", "callback_records"):
        return msgspec.json.decode(raw, type=dict[str, list[msgspec.Raw]])
    return msgspec.json.decode(raw)


def _decoded(row: Any) -> Any:
    """A record; text that cannot be decoded comes back as text."""
    if not isinstance(row, msgspec.Raw):
        return row
    try:
        return msgspec.json.decode(row)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return bytes(row).decode("utf-8", "replace")


class _Tool:
    """The records of one process."""

    def __init__(self, session: ImportSession, tool: dict[str, Any]) -> None:
        self.session = session
        self.tool = tool
        metadata = tool.get("metadata")
        self.metadata = metadata if isinstance(metadata, dict) else {}
        pid = self.metadata.get("pid")
        self.process = pid if isinstance(pid, int) else None
        self.devices: dict[Any, int] = {}
        strings = tool.get("strings")
        self.strings = strings if isinstance(strings, dict) else {}
        self.kernels = {row.get("kernel_id"): row for row in self._dicts(tool.get("kernel_symbols"))}
        self.markers = {
            row.get("key"): row.get("value") for row in self._dicts(self.strings.get("marker_api"))
        }
        self.operations = [
            row.get("operations") for row in self._dicts(self.strings.get("buffer_records"))
        ] or [row.get("operations") for row in self._dicts(self.strings.get("callback_records"))]
        self.by_stream = False

    @staticmethod
    def _dicts(rows: Any) -> list[dict[str, Any]]:
        return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []

    def read(self) -> None:
        self._agents()
        self._host()
        self.session.merged_rows(len(self.kernels))
        records = self.tool.get("buffer_records")
        records = records if isinstance(records, dict) else {}
        dispatches = records.get("kernel_dispatch")
        self.by_stream = any(
            isinstance(row, dict) and _handle(row.get("stream_id"))
            for row in map(_decoded, dispatches if isinstance(dispatches, list) else [])
        )
        for name, rows in records.items():
            for row in map(_decoded, rows if isinstance(rows, list) else []):
                if not isinstance(row, dict):
                    self.session.quarantine({name: row}, "no_record")
                elif name == "kernel_dispatch":
                    self._dispatch(row)
                elif name == "memory_copy":
                    self._copy(row)
                elif name in _API:
                    self._call(name, row)
                elif name == "memory_allocation":
                    self._allocation(row)
                else:
                    self._keep(name, row)
        callbacks = self.tool.get("callback_records")
        for name, rows in (callbacks if isinstance(callbacks, dict) else {}).items():
            for row in map(_decoded, rows if isinstance(rows, list) else []):
                self._keep(name, row if isinstance(row, dict) else {"value": row})
        for name in ("code_objects", "host_functions", "counters", "summary"):
            for row in self._dicts(self.tool.get(name)):
                self.session.source_row("metadata", name, row)

    def _agents(self) -> None:
        rows: list[dict[str, Any]] = []
        for agent in self._dicts(self.tool.get("agents")):
            self.session.source_row(
                "metadata", "agent", {k: v for k, v in agent.items() if k not in ("caches", "io_links")}
            )
            if agent.get("type") != _GPU:
                continue
            number = agent.get("gpu_index")
            if not isinstance(number, int) or number < 0:
                number = len(self.devices)
            self.devices[_handle(agent.get("id"))] = number
            sizes = [bank.get("size_in_bytes") for bank in self._dicts(agent.get("mem_banks"))]
            units = agent.get("cu_count")
            rows.append(
                {
                    "device": f"hip:{number}",
                    "name": str(agent.get("product_name") or agent.get("name") or ""),
                    "vendor": "amd",
                    "memory_bytes": max((size for size in sizes if isinstance(size, int)), default=None),
                    "unit_count": units if isinstance(units, int) else None,
                    "attributes": attributes_json(
                        {
                            key: agent.get(key)
                            for key in (
                                "name",
                                "gfx_target_version",
                                "max_engine_clk_fcompute",
                                "wave_front_size",
                                "simd_per_cu",
                            )
                        }
                    ),
                }
            )
        if rows:
            self.session.writer.write("devices", rows)

    def _host(self) -> None:
        manifest = self.session.writer.manifest
        node = self.metadata.get("node")
        if isinstance(node, dict):
            manifest.host |= {
                "hostname": str(node.get("hostname", "")),
                "platform": str(node.get("release", "")),
            }
        command = self.metadata.get("command")
        if isinstance(command, list):
            manifest.command = [str(word) for word in command]
        if self.metadata:
            self.session.source_row("metadata", "metadata", self.metadata)

    def _event(self, row: dict[str, Any], track: int, category: str, name: str, **more: Any) -> int | None:
        start, end = (row.pop(key, None) for key in _TIMES)
        correlation = _correlation(row)
        return self.session.event(
            track_id=track,
            category=category,
            name=name,
            start_ns=start,
            duration_ns=end - start if isinstance(start, int) and isinstance(end, int) else None,
            correlation_id=correlation,
            link=self._link(correlation),
            attributes=attributes_json(row),
            **more,
        )

    def _link(self, correlation: int | None) -> int:
        if not correlation:
            return 0
        return ((self.process or 0) & 0x7FFFFF) << 40 | (correlation & 0xFF_FFFF_FFFF)

    def _dispatch(self, row: dict[str, Any]) -> None:
        info = row.pop("dispatch_info", None)
        info = info if isinstance(info, dict) else {}
        kernel = self.kernels.get(info.get("kernel_id"), {})
        name = str(
            kernel.get("formatted_kernel_name")
            or kernel.get("kernel_name")
            or f"kernel {info.get('kernel_id')}"
        )
        row |= {key: kernel[key] for key in _RESOURCES if key in kernel}
        for key in ("workgroup_size", "grid_size"):
            size = info.get(key)
            if isinstance(size, dict):
                row[key] = [size.get(axis) for axis in "xyz"]
        row |= {key: info.get(key) for key in ("dispatch_id", "private_segment_size", "group_segment_size")}
        device = self.devices.get(_handle(info.get("agent_id")), 0)
        stream, queue = _handle(row.pop("stream_id", None)), _handle(info.get("queue_id"))
        row["queue"] = queue
        number = stream if self.by_stream else queue
        category = work_category(name)
        found = self._event(row, self._stream(device, number), category, name)
        if category == "collective" and found is not None:
            self.session.collectives.append(
                {"event_id": found, "side": "device", "operation": collective_operation(name)}
            )

    def _stream(self, device: int, number: Any) -> int:
        kind = "stream" if self.by_stream else "queue"
        number = number if isinstance(number, int) else None
        return self.session.tracks.stream("hip", device, number, f"{kind} {number}", self.process)

    def _copy(self, row: dict[str, Any]) -> None:
        name = self._operation(row, "memory copy").replace("MEMORY_COPY_", "Memcpy ").replace("_", " ")
        target, source = (_handle(row.pop(key, None)) for key in ("dst_agent_id", "src_agent_id"))
        device = self.devices.get(target, self.devices.get(source, 0))
        row |= {"source_device": self.devices.get(source), "target_device": self.devices.get(target)}
        size = row.pop("bytes", None)
        track = self.session.tracks.stream("hip", device, None, "copies", self.process)
        if self.by_stream and isinstance(stream := _handle(row.get("stream_id")), int) and stream:
            track = self._stream(device, stream)
        self._event(row, track, "copy", name, size_bytes=size if isinstance(size, int) else None)

    def _call(self, kind: str, row: dict[str, Any]) -> None:
        correlation = _correlation(row, keep=True)
        name = self._operation(row, kind)
        category = _API[kind]
        if kind == "marker_api":
            text = self.markers.get(correlation)
            row, name = (row | {"operation_name": name}, str(text)) if text else (row, name)
        elif category == "runtime":
            category = call_category(name)
        thread = row.pop("thread_id", None)
        track = self.session.tracks.thread(self.process, thread if isinstance(thread, int) else None)
        number = self._event(row, track, category, name)
        if category == "collective" and number is not None:
            self.session.collectives.append(
                {"event_id": number, "side": "host", "operation": collective_operation(name)}
            )

    def _allocation(self, row: dict[str, Any]) -> None:
        name = self._operation(row, "")
        size, start = row.get("allocation_size"), row.get("start_timestamp")
        if not isinstance(size, int) or not isinstance(start, int):
            self.session.quarantine(row, "no_memory_event")
            return
        freed = "FREE" in name.upper()
        agent = self.devices.get(_handle(row.get("agent_id")))
        address = row.pop("address", None)
        address = _handle(address) if isinstance(address, dict) else address
        self.session.memory_event(
            start,
            "free" if freed else "alloc",
            address if isinstance(address, int) else None,
            -size if freed else size,
            "cpu" if agent is None else f"hip:{agent}",
            attributes=row | {"operation_name": name},
        )

    def _operation(self, row: dict[str, Any], fallback: str) -> str:
        kind, operation = row.pop("kind", None), row.pop("operation", None)
        try:
            return str(self.operations[kind][operation])  # type: ignore[index]
        except (IndexError, TypeError, KeyError):
            row |= {"kind": kind, "operation": operation}
            return fallback

    def _keep(self, name: str, row: dict[str, Any]) -> None:
        time = row.get("start_timestamp", row.get("timestamp"))
        self.session.source_row("sample", name, row, timestamp_ns=time if isinstance(time, int) else None)


def _handle(value: Any) -> Any:
    return value.get("handle") if isinstance(value, dict) else value if isinstance(value, int) else None


def _correlation(row: dict[str, Any], *, keep: bool = False) -> int | None:
    value = row.get("correlation_id") if keep else row.pop("correlation_id", None)
    if isinstance(value, dict):
        external = value.get("external")
        if not keep and external:
            row["external_correlation_id"] = external
        value = value.get("internal")
    return value if isinstance(value, int) and 0 < value < 2**63 else None
