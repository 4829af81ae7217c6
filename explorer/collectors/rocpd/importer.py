"""Import of rocpd databases: dispatches, copies, API calls, markers, allocations, samples."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from explorer.collectors.device_work import call_category, collective_operation, work_category
from explorer.collectors.import_session import ImportSession
from explorer.collectors.options import DEFAULTS, ImportOptions
from explorer.collectors.rocpd.dataset import DataSet, data_sets
from explorer.collectors.row_buffer import attributes_json
from explorer.collectors.source import Source
from explorer.collectors.source_content import plain_file
from explorer.collectors.sqlite_file import MAGIC, SqliteFile, tables_of
from explorer.collectors.sqlite_report import report_file

if TYPE_CHECKING:
    from explorer.store.writer import RunWriter

NAME = "rocpd"
_KEPT = (
    "metadata",
    "info_node",
    "info_process",
    "info_agent",
    "info_queue",
    "info_stream",
    "info_code_object",
    "arg",
)
_RESOURCES = ("sgpr_count", "arch_vgpr_count", "accum_vgpr_count")
_EMPTY = ("{}", "")


def recognises(source: Source) -> bool:
    """An SQLite database with rocpd tables."""
    if not source.head.startswith(MAGIC):
        return False
    return any("string" in tables for tables in data_sets(tables_of(source)).values())


def import_source(source: Source, writer: RunWriter, options: ImportOptions = DEFAULTS) -> None:
    """Read every data set of a database into one rank. Raises InputError when it is no readable database."""
    with plain_file(source) as (path, damage), SqliteFile(path, shown=source.path) as file:
        session = ImportSession(writer, source, NAME, options)
        if damage:
            session.lost("the file", damage)
        sets = data_sets(file.tables)
        devices: dict[str, dict[str, Any]] = {}
        for number, tables in enumerate(sets.values()):
            reading = _Reading(session, DataSet(file, tables), number)
            reading.read()
            devices |= reading.devices
        named = {name for tables in sets.values() for name in tables.values()}
        for table in file.tables:
            if table not in named:
                for row in file.records(table):
                    session.source_row("metadata", table, row)
        if devices:
            writer.write("devices", [devices[name] for name in sorted(devices)])
        writer.health(
            "no_absolute_time",
            "info",
            1,
            "rocprofv3 counts time from the machine's start, not from an epoch.",
        )
        report_file(file, session)
        session.close()


class _Reading:
    """The rows of one data set."""

    def __init__(self, session: ImportSession, data: DataSet, number: int) -> None:
        self.session = session
        self.data = data
        self.number = number
        self.devices: dict[str, dict[str, Any]] = {}
        self._gpus: dict[Any, int] = {}

    def read(self) -> None:
        self._agents()
        self.session.merged_rows(self.data.merged)
        for row in self.data.placed("region"):
            self._region(row)
        for row in self.data.placed("kernel_dispatch"):
            self._dispatch(row)
        for row in self.data.placed("memory_copy"):
            self._copy(row)
        for row in self.data.placed("memory_allocate"):
            self._allocation(row)
        for row in self.data.placed("sample"):
            self._sample(row)
        for table in _KEPT:
            for row in self.data.rows(table):
                self.session.source_row("argument" if table == "arg" else "metadata", f"rocpd_{table}", row)
        for row in self.data.processes.values():
            if row.get("command"):
                self.session.writer.manifest.command = str(row["command"]).split()
        for row in self.data.rows("info_node"):
            self.session.writer.manifest.host["hostname"] = str(row.get("hostname", ""))

    def _agents(self) -> None:
        for key, row in self.data.agents.items():
            if row.get("type") != "GPU":
                continue
            number = row.get("type_index", row.get("logical_index"))
            self._gpus[key] = number if isinstance(number, int) and 0 <= number < 2**31 else len(self._gpus)
            name = f"hip:{self._gpus[key]}"
            facts = _json(row.get("extdata"))
            units = facts.get("cu_count")
            self.devices[name] = {
                "device": name,
                "name": str(row.get("product_name") or row.get("name") or ""),
                "vendor": "amd",
                "unit_count": units if isinstance(units, int) and 0 <= units < 2**31 else None,
                "attributes": attributes_json({key: value for key, value in row.items() if key != "extdata"}),
            }

    def _process(self, row: dict[str, Any]) -> int | None:
        pid = self.data.processes.get(row.get("pid"), {}).get("pid", row.get("pid"))
        return pid if isinstance(pid, int) else None

    def _thread(self, row: dict[str, Any]) -> int:
        entry = self.data.threads.get(row.get("tid"), {})
        thread = entry.get("tid", row.get("tid"))
        return self.session.tracks.thread(
            self._process(row), thread if isinstance(thread, int) else None, entry.get("name")
        )

    def _stream(self, row: dict[str, Any], agent: Any) -> int:
        stream, queue = row.get("stream_id"), row.get("queue_id")
        kind, number = ("stream", stream) if isinstance(stream, int) else ("queue", queue)
        number = number if isinstance(number, int) else None
        label = f"{kind} {number}" if number is not None else "copies"
        return self.session.tracks.stream("hip", self._gpus.get(agent, 0), number, label, self._process(row))

    def _event(self, row: dict[str, Any], track: int, category: str, name: str, **more: Any) -> int | None:
        start, end = row.pop("start", None), row.pop("end", None)
        event = row.get("event_id")
        _, correlation = self.data.events.get(event, (None, None))
        known = isinstance(correlation, int) and 0 < correlation < 2**40
        row = {key: value for key, value in row.items() if value not in _EMPTY}
        number = self.session.event(
            track_id=track,
            category=category,
            name=name,
            start_ns=start,
            duration_ns=end - start if isinstance(start, int) and isinstance(end, int) else None,
            correlation_id=correlation if known else None,
            # Correlation ids count per process: data sets of one file must not meet.
            link=(self.number & 0xFFFF) << 40 | correlation if known else 0,
            attributes=attributes_json(row | {"counters": self.data.counters.pop(event, None)}),
            **more,
        )
        if category == "collective" and number is not None:
            self.session.collectives.append(
                {"event_id": number, "side": "device", "operation": collective_operation(name)}
            )
        return number

    def _region(self, row: dict[str, Any]) -> None:
        name = self.data.strings.get(row.pop("name_id", None), "region")
        kind = (self.data.events.get(row.get("event_id"), (None, None))[0] or "").upper()
        category = "other"
        if "MARKER" in kind or "ROCTX" in kind:
            category, message = "annotation", _json(row.get("extdata")).get("message")
            if isinstance(message, str) and message:
                row, name = row | {"call": name}, message
        elif "RCCL" in kind or name.startswith("nccl"):
            category = "collective"
        elif "HIP" in kind or "HSA" in kind or name.startswith(("hip", "hsa")):
            category = call_category(name)
        track = self._thread(row)
        number = self._event(row | {"kind": kind or None}, track, category, name)
        if category == "collective" and number is not None:
            self.session.collectives[-1]["side"] = "host"

    def _dispatch(self, row: dict[str, Any]) -> None:
        kernel = self.data.kernels.get(row.get("kernel_id"), {})
        name = str(
            kernel.get("display_name") or kernel.get("kernel_name") or f"kernel {row.get('kernel_id')}"
        )
        for size in ("workgroup_size", "grid_size"):
            row[size] = [row.pop(f"{size}_{axis}", None) for axis in "xyz"]
        row |= {key: kernel[key] for key in _RESOURCES if key in kernel}
        track = self._stream(row, row.get("agent_id"))
        region = self.data.strings.get(row.pop("region_name_id", None))
        self._event(row | {"region": region}, track, work_category(name), name)

    def _copy(self, row: dict[str, Any]) -> None:
        name = self.data.strings.get(row.pop("name_id", None), "memory copy")
        name = name.replace("MEMORY_COPY_", "Memcpy ").replace("_", " ")
        size = row.pop("size", None)
        agent = next(
            (row[key] for key in ("dst_agent_id", "src_agent_id") if row.get(key) in self._gpus), None
        )
        self._event(
            row, self._stream(row, agent), "copy", name, size_bytes=size if isinstance(size, int) else None
        )

    def _allocation(self, row: dict[str, Any]) -> None:
        kind, size, start = row.pop("type", None), row.pop("size", None), row.pop("start", None)
        action = {"ALLOC": "alloc", "REALLOC": "alloc", "FREE": "free", "RECLAIM": "free"}.get(str(kind))
        if (
            action is None
            or not isinstance(size, int)
            or not isinstance(start, int)
            or not 0 <= start < 2**63
        ):
            self.session.quarantine({**row, "type": kind, "size": size, "start": start}, "no_memory_event")
            return
        agent, address = row.get("agent_id"), row.pop("address", None)
        row["name"] = self.data.strings.get(row.pop("name_id", None))
        self.session.memory_event(
            start,
            action,
            address if isinstance(address, int) else None,
            -size if action == "free" else size,
            f"hip:{self._gpus[agent]}" if agent in self._gpus else "cpu",
            attributes={key: value for key, value in row.items() if value not in _EMPTY},
        )

    def _sample(self, row: dict[str, Any]) -> None:
        time = row.pop("timestamp", None)
        values = self.data.counters.pop(row.get("event_id"), {})
        numbers = {name: value for name, value in values.items() if isinstance(value, int | float)}
        agent = row.get("agent_id")
        for place, (name, value) in enumerate(numbers.items()):
            device = self._gpus.get(agent)
            track = self.session.tracks.counter(name, "cpu" if device is None else "hip", device)
            self.session.counter(track, time, name, value)
            if place:
                self.session.derived_row()
        if not numbers:
            row["name"] = self.data.strings.get(row.pop("name_id", None))
            self.session.source_row(
                "sample", "rocpd_sample", row, timestamp_ns=time if isinstance(time, int) else None
            )


def _json(text: Any) -> dict[str, Any]:
    if not isinstance(text, str | bytes) or len(text) > 1 << 20:
        return {}
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
