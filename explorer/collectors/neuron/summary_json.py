"""Importer of `neuron-explorer view --output-format summary-json`: the Summary numbers of each graph, without a timeline."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa

from explorer.collectors.json_document import read_document
from explorer.collectors.neuron.official import EVENT_OFFSETS
from explorer.collectors.options import ImportOptions
from explorer.collectors.row_buffer import attributes_json
from explorer.collectors.source import Source
from explorer.collectors.source_content import read_content
from explorer.model.errors import InputError
from explorer.model.neuron_schema import TABLE_PREFIX, official_tables
from explorer.model.schema import Column, Table
from explorer.store.writer import RunWriter

NAME = "neuron_summary_json"
MAX_BYTES = 64 << 20
_KNOWN = (
    "total_time",
    "tensor_engine_active_time",
    "hbm_read_bytes",
    "mfu_estimated_percent",
    "hardware_flops",
)


def recognises(source: Source) -> bool:
    """Whether the content is an object of graphs ('n_<hash>') with Summary's keys."""
    head = source.head.lstrip()
    return (
        head.startswith(b"{")
        and sum(f'"{key}"'.encode() in head for key in _KNOWN) >= 2
        and b"traceEvents" not in head
    )


def import_source(source: Source, writer: RunWriter, options: ImportOptions) -> None:
    """Write `neuron/Summary`, one row a graph, and every key the reference does not know as a counter.

    Raises InputError when it is no such document.
    """
    content = read_content(source, max_bytes=MAX_BYTES)
    read = read_document(content.data, source.name)
    document = read.value
    graphs = _graphs(document)
    if not graphs:
        raise InputError(
            f"{source.name} holds no Neuron summary.", "Write one with --output-format summary-json."
        )
    spec = official_tables()["Summary"].columns
    counters: list[dict[str, Any]] = []
    tracks: list[dict[str, Any]] = []
    rows: list[dict[str, Any]] = []
    total = 0
    for place, (graph, values) in enumerate(graphs.items()):
        row: dict[str, Any] = {"profile": graph}
        tracks.append(
            {"track_id": place, "kind": "counter", "device_type": "neuron", "device_index": 0, "label": graph}
        )
        for key, value in values.items():
            total += 1
            if not _is_number(value):
                writer.write(
                    "source_rows",
                    [
                        {
                            "kind": "metadata",
                            "name": key,
                            "key": graph,
                            "attributes": _value_json(value),
                        }
                    ],
                )
            elif key in spec:
                row[key] = _number(value, spec[key].type)
            else:
                counters.append(
                    {"track_id": place, "timestamp_ns": 0, "name": key, "value": float(value), "unit": None}
                )
        rows.append(row)
    used = [name for name in spec if any(name in row for row in rows)]
    table = Table(
        f"{TABLE_PREFIX}Summary",
        "Summary numbers of each graph.",
        (
            Column("rank", "int32", "Process rank"),
            Column("profile", "string", "Graph as the summary names it"),
            *(
                Column(
                    name,
                    "int64" if spec[name].type == "int64" else "float64",
                    name,
                    nullable=True,
                    unit=spec[name].unit,
                )
                for name in used
            ),
        ),
    )
    kinds = {name: pa.int64() if spec[name].type == "int64" else pa.float64() for name in used}
    columns = {name: pa.array([row.get(name) for row in rows], kind) for name, kind in kinds.items()}
    writer.write(table, pa.table({"profile": pa.array([row["profile"] for row in rows]), **columns}))
    offsets = [
        {"profile": row["profile"], "table_name": "", "id_offset": 0, "device_index": 0, "clock_offset_ns": 0}
        for row in rows
    ]
    writer.write(EVENT_OFFSETS, offsets)
    writer.write("tracks", tracks)
    if counters:
        writer.write("counters", counters)
    writer.manifest.counts |= {"read": total, "neuron.Summary": len(rows), "counters": len(counters)}
    writer.manifest.attributes["neuron"] = {"profiles": [], "rank_from": "summary", "system": False}
    if damage := read.damage or content.damage:
        writer.manifest.losses.append({"where": "the file", "reason": damage, "offset": read.offset})
        writer.health(
            "lost_rows", "warning", 0, f"Part of the file could not be read: {damage}.", "Copy it again."
        )
    writer.health(
        "neuron_summary_only",
        "info",
        len(rows),
        "A summary holds totals only: no timeline, no lines, no idle causes.",
        "Import the Parquet profile for those (neuron-explorer view --ingest-only).",
        "engines,lines,bottlenecks",
    )


def _graphs(document: Any) -> dict[str, dict[str, Any]]:
    if not isinstance(document, dict):
        return {}
    if any(key in document for key in _KNOWN):
        return {"summary": document}
    return {
        str(name): values
        for name, values in document.items()
        if isinstance(values, dict) and any(key in values for key in _KNOWN)
    }


def _is_number(value: Any) -> bool:
    """Whether a value fits a counter or a column; NaN does, as an empty one."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return -(2**63) <= value < 2**63 or value != value


def _value_json(value: Any) -> str:
    """The JSON text of a value."""
    return (attributes_json({"": value}) or '{"":null}')[len('{"":') : -1]


def _number(value: int | float, kind: str) -> int | float | None:
    if isinstance(value, float) and math.isnan(value):
        return None
    return round(value) if kind == "int64" else float(value)
