"""What an importer of any format needs at hand: the run's tables being filled, and the count of every source row."""

from __future__ import annotations

from typing import Any

from explorer.collectors.call_stacks import CallStacks
from explorer.collectors.event_table import EventTable
from explorer.collectors.options import ImportOptions
from explorer.collectors.row_buffer import RowBuffer, attributes_json
from explorer.collectors.source import Source
from explorer.collectors.step_intervals import settled
from explorer.collectors.track_table import TrackTable
from explorer.store.writer import RunWriter

_INT64 = range(-(2**63), 2**63)
_SOURCE_ROW = ("kind", "name", "track_id", "timestamp_ns", "key", "category", "attributes")
_COUNTER = ("track_id", "timestamp_ns", "name", "value", "unit")
_MEMORY = (
    "event_id",
    "timestamp_ns",
    "action",
    "address",
    "size_bytes",
    "allocated_bytes",
    "reserved_bytes",
    "device",
    "site_id",
    "stack_id",
    "category",
    "attributes",
)


class ImportSession:
    """The tables of one rank while an importer fills them.

    Every row of the source is counted once: at the end `source_total` and `derived` (rows beyond the first that one source row
    gave) equal the sum of the others, which `close` checks and writes into the manifest.
    """

    def __init__(self, writer: RunWriter, source: Source, format_name: str, options: ImportOptions) -> None:
        self.writer = writer
        self.source = source
        self.format_name = format_name
        self.tracks = TrackTable()
        self.stacks = CallStacks()
        self.events = EventTable(writer, self.tracks, memory_bytes=options.memory_bytes // 4)
        self.counters = RowBuffer(writer, "counters", _COUNTER)
        self.memory = RowBuffer(writer, "memory_events", _MEMORY)
        self.source_rows = RowBuffer(writer, "source_rows", _SOURCE_ROW)
        self.steps: list[tuple[int, int, int]] = []
        self.edges: list[tuple[int, int, str]] = []
        self.collectives: list[dict[str, Any]] = []
        self.event_sites: list[dict[str, Any]] = []
        self.counts = dict.fromkeys(("source_total", "derived", "events", "quarantine", "merged"), 0)

    def event(self, **row: Any) -> int | None:
        """Add one source row as an event; rows with impossible times go to quarantine and give None."""
        self.counts["source_total"] += 1
        start, duration = row.get("start_ns"), row.get("duration_ns")
        reason = bad_time(start, duration)
        if reason is not None:
            self.quarantine(row, reason, counted=True)
            return None
        self.counts["events"] += 1
        return self.events.add(**row)

    def counter(self, track: int, timestamp_ns: Any, name: str, value: Any, unit: str | None = None) -> None:
        """Add one value of a counter."""
        if not isinstance(timestamp_ns, int) or timestamp_ns not in _INT64 or isinstance(value, str | bytes):
            self.counts["source_total"] += 1
            reason = "no_time" if not isinstance(timestamp_ns, int) else "no_number"
            self.quarantine(
                {"name": name, "timestamp_ns": timestamp_ns, "value": value}, reason, counted=True
            )
            return
        self.counts["source_total"] += 1
        self.counters.add(track, timestamp_ns, name, None if value is None else float(value), unit)

    def memory_event(
        self,
        timestamp_ns: int,
        action: str,
        address: int | None,
        size_bytes: int,
        device: str,
        *,
        allocated_bytes: int | None = None,
        reserved_bytes: int | None = None,
        site_id: int | None = None,
        stack_id: int | None = None,
        category: str | None = None,
        attributes: dict[str, Any] | None = None,
    ) -> int:
        """Add one allocation or free; returns its number."""
        self.counts["source_total"] += 1
        number = self.events.reserve()
        if address is not None and address not in _INT64:
            attributes = {**(attributes or {}), "address": str(address)}
            address = None
        self.memory.add(
            number,
            timestamp_ns,
            action,
            address,
            size_bytes,
            allocated_bytes,
            reserved_bytes,
            device,
            site_id,
            stack_id,
            category,
            attributes_json(attributes or {}),
        )
        return number

    def source_row(
        self,
        kind: str,
        name: str,
        fields: dict[str, Any],
        *,
        track_id: int | None = None,
        timestamp_ns: int | None = None,
        key: Any = None,
        category: str | None = None,
    ) -> None:
        """Keep a row that is neither an event nor a value."""
        self.counts["source_total"] += 1
        if timestamp_ns is not None and timestamp_ns not in _INT64:
            fields, timestamp_ns = {**fields, "timestamp": str(timestamp_ns)}, None
        text = None if key is None else str(key)
        self.source_rows.add(kind, name, track_id, timestamp_ns, text, category, attributes_json(fields))

    def quarantine(self, row: Any, reason: str, *, counted: bool = False, offset: int | None = None) -> None:
        """Keep a row that cannot be used, with the reason."""
        self.counts["source_total"] += 0 if counted else 1
        self.counts["quarantine"] += 1
        self.writer.quarantine(attributes_json(row) if isinstance(row, dict) else row, reason, offset)

    def merged_rows(self, count: int) -> None:
        """Count rows that only describe others (string tables, enumerations, details): they live on inside those."""
        self.counts["source_total"] += count
        self.counts["merged"] += count

    def derived_row(self) -> None:
        """Say that the row just added came from a source row that had already given one."""
        self.counts["source_total"] -= 1
        self.counts["derived"] += 1

    def lost(self, where: str, reason: str, count: int | None = None, **details: Any) -> None:
        """Say that a part of the source could not be read."""
        self.writer.manifest.losses.append({"where": where, "reason": reason, "count": count, **details})
        self.writer.health(
            "lost_rows",
            "warning",
            count or 0,
            f"Part of {where} could not be read: {reason}.",
            "Export or copy the file again; everything readable was kept.",
        )

    def repaired(self, what: str, count: int) -> None:
        """Say that values were repaired."""
        if count:
            self.writer.manifest.repairs.append({"what": what, "count": count})
            self.writer.health("repaired_values", "info", count, f"{count} values were repaired: {what}.")

    def close(self) -> None:
        """Link and write everything; check the counts."""
        self.steps = settled(self.steps)
        self.events.finish(self.steps)
        self.tracks.write(self.writer)
        self.stacks.write(self.writer)
        for buffer in (self.counters, self.memory, self.source_rows):
            buffer.flush()
        if self.steps:
            self._write_steps()
        for table, rows in (("collectives", self.collectives), ("event_sites", self.event_sites)):
            if rows:
                self.writer.write(table, rows)
        if self.edges:
            source, target, kind = zip(*self.edges)
            ranks = [self.writer.rank] * len(source)
            self.writer.write(
                "edges", {"source_id": source, "target_rank": ranks, "target_id": target, "kind": kind}
            )
        counts = self.counts | {
            "counters": self.counters.count,
            "memory_events": self.memory.count,
            "source_rows": self.source_rows.count,
        }
        kept = sum(count for name, count in counts.items() if name not in ("source_total", "derived"))
        if kept != counts["source_total"] + counts["derived"]:
            self.writer.health(
                "counts_differ",
                "error",
                abs(counts["source_total"] + counts["derived"] - kept),
                f"{counts['source_total']} source rows were read but {kept} were kept.",
                "This is a fault of the importer; please report it with the file's format.",
            )
        self.writer.manifest.counts = counts
        if counts["quarantine"]:
            self.writer.health(
                "quarantined_rows",
                "warning",
                counts["quarantine"],
                f"{counts['quarantine']} source rows have impossible times or values.",
                "See the table quarantine for each row and its reason.",
            )

        self._tell(counts)

    def _tell(self, counts: dict[str, int]) -> None:
        events, writer = self.events, self.writer
        writer.manifest.inputs.append(
            {
                "path": self.source.path,
                "member": self.source.member,
                "size_bytes": self.source.size_bytes,
                "sha256": None,
                "format": self.format_name,
                "container": self.source.container,
                "rows": counts["source_total"],
            }
        )
        if events.unlinked_work:
            share = events.unlinked_work / events.device_work
            writer.health(
                "unlinked_kernels",
                "warning" if share > 0.05 else "info",
                events.unlinked_work,
                f"{events.unlinked_work} of {events.device_work} device events have no launch in the trace.",
                "Trace the runtime calls too, and whole steps; work enqueued before the start has no launch.",
                "lines, launches",
            )
        if counts["events"] and not events.with_line:
            writer.health(
                "no_lines",
                "info",
                1,
                "The trace holds no source lines, so nothing can be charged to them.",
                "Record with neuron-explorer record.",
                "lines",
            )

    def _write_steps(self) -> None:
        number, start, end = zip(*self.steps)
        self.writer.write(
            "steps",
            {
                "step": number,
                "start_ns": start,
                "duration_ns": [last - first for first, last in zip(start, end)],
                "complete": [True] * len(number),
            },
        )


def bad_time(start: Any, duration: Any) -> str | None:
    """Why a start and duration cannot be those of an event; None when they can."""
    if not isinstance(start, int) or not isinstance(duration, int):
        return "no_time"
    if duration < 0:
        return "negative_duration"
    if start not in _INT64 or start + duration not in _INT64:
        return "time_out_of_range"
    return None
