"""Importer of the JSON export of the old neuron-profile tool: instructions with times in picoseconds.

Known from public ingest code only: a list `instruction` of rows with `timestamp` and `duration` in picoseconds, the engine
as `label`, and further lists such as `dma`, `semaphore_update`, `layer_summary`. Every row of other lists is kept as a
source row.
"""

from __future__ import annotations

import math
from typing import Any, TypeGuard

from explorer.collectors.import_session import ImportSession
from explorer.collectors.json_document import read_document
from explorer.collectors.neuron.lines import hlo_location, source_locations
from explorer.collectors.options import ImportOptions
from explorer.collectors.row_buffer import attributes_json
from explorer.collectors.source import Source
from explorer.collectors.source_content import read_content
from explorer.model.errors import InputError
from explorer.model.neuron_engines import engine_name
from explorer.store.writer import RunWriter

NAME = "neuron_legacy_json"
MAX_BYTES = 2 << 30
PICOSECONDS = 1000
_TIMED = {"instruction": "instruction", "dma": "dma", "cc_op": "collective", "cc_ops": "collective"}
_LOCATIONS = ("nki_source_location", "bir_debug_info_source_location", "source_location")


def recognises(source: Source) -> bool:
    """Whether the content is an object with a list `instruction` of timed rows."""
    head = source.head.lstrip()
    return (
        head.startswith(b"{")
        and b'"instruction"' in head
        and b'"timestamp"' in head
        and b'"traceEvents"' not in head
    )


def import_source(source: Source, writer: RunWriter, options: ImportOptions) -> None:
    """Write instructions, DMA and collectives as events. Raises InputError when it is no such export."""
    content = read_content(source, max_bytes=MAX_BYTES)
    read = read_document(content.data, source.name)
    document = read.value
    if not isinstance(document, dict) or not isinstance(document.get("instruction"), list):
        raise InputError(
            f"{source.name} holds no list of instructions.", "Export it with the JSON output format."
        )
    session = ImportSession(writer, source, NAME, options)
    if damage := read.damage or content.damage:
        session.lost("the file", damage, offset=read.offset)
    for section, rows in document.items():
        category = _TIMED.get(section)
        for row in rows if isinstance(rows, list) else [rows]:
            if category is None or not isinstance(row, dict):
                fields = row if isinstance(row, dict) else {"value": row}
                session.source_row("metadata", section, fields)
            else:
                _event(session, section, category, row)
    session.close()
    writer.health(
        "neuron_legacy_json",
        "info",
        len(document["instruction"]),
        "The old JSON export gives times in picoseconds; they are rounded down to nanoseconds.",
        "Use the Parquet output for further tables (dependencies, debug information, transfers).",
    )


def _is_number(value: Any) -> TypeGuard[int | float]:
    return isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))


def _event(session: ImportSession, section: str, category: str, row: dict[str, Any]) -> None:
    start, duration = row.get("timestamp"), row.get("duration")
    if _is_number(start) and _is_number(duration):
        # Both ends are rounded the same way, so that instructions that touch still do.
        begin = int(start) // PICOSECONDS
        length = (int(start) + int(duration)) // PICOSECONDS - begin if duration >= 0 else -1
        row = {**row, "start_ns": begin, "duration_ns": length}
    label = str(row.get("label") or row.get("engine") or row.get("queue_name") or section)
    kind = "queue" if category == "dma" else "stream" if category == "collective" else "engine"
    track = session.tracks.stream(
        "neuron", 0, None, engine_name(label) if kind == "engine" else label, kind=kind
    )
    chain = None
    for name in _LOCATIONS:
        frames = source_locations(str(row.get(name) or ""))
        if frames:
            chain = session.stacks.stack(frames[:1])
            break
    if chain is None and row.get("hlo_attrs"):
        frame = hlo_location(str(row["hlo_attrs"]))
        chain = session.stacks.stack([frame]) if frame else None
    rest = {k: v for k, v in row.items() if k not in ("start_ns", "duration_ns", "timestamp", "duration")}
    session.event(
        track_id=track,
        category=category,
        name=str(row.get("opcode") or row.get("name") or section),
        start_ns=row.get("start_ns"),
        duration_ns=row.get("duration_ns"),
        site_id=chain.site_id if chain else None,
        stack_id=chain.stack_id if chain else None,
        attribution="debug_info" if chain else "none",
        precision="exact" if chain else None,
        size_bytes=row.get("transfer_bytes") if isinstance(row.get("transfer_bytes"), int) else None,
        attributes=attributes_json(rest),
    )
