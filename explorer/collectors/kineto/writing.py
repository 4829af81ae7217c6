"""The tables of one trace, written as one rank of a run, with its counts, losses and health."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from explorer.collectors.kineto.collecting import KINDS, Collected, codes
from explorer.collectors.kineto.collectives import collective_rows
from explorer.collectors.kineto.counters import counter_rows
from explorer.collectors.kineto.devices import device_rows
from explorer.collectors.kineto.health import tell
from explorer.collectors.kineto.launches import NONE
from explorer.collectors.kineto.lines import METHODS, PRECISIONS, Lines
from explorer.collectors.kineto.linking import Links
from explorer.collectors.kineto.memory import memory_rows
from explorer.collectors.kineto.phases import PHASES
from explorer.collectors.kineto.splitter import TraceText
from explorer.store.writer import RunWriter

Ints = npt.NDArray[np.int64]


def nullable(values: Ints, absent: npt.NDArray[np.bool_]) -> pa.Array:
    """An int64 column with nulls."""
    return pa.array(np.where(absent, 0, values), pa.int64(), mask=absent)


def references(positions: Ints, row: Ints) -> pa.Array:
    """Positions of events as event ids; -1 is null."""
    return nullable(row[np.maximum(positions, 0)] if len(row) else positions, positions < 0)


def chosen(values: tuple[str | None, ...], which: Ints) -> pa.Array:
    """Positions in a list of words as a dictionary column; None is null."""
    words = pa.array(list(values), pa.string())
    return pa.DictionaryArray.from_arrays(
        pa.array(which.astype(np.int32), mask=np.asarray(pc.is_null(words))[which]), words.fill_null("")
    )


def write_tables(
    rows: pa.Table, found: Collected, links: Links, lines: Lines, writer: RunWriter
) -> Counter[str]:
    """Write every table. The counter says how many source rows went where."""
    events = found.events
    row = events.row
    take = pa.array(row)
    ids = row  # An event's id is the number of its row in the source.
    counts: Counter[str] = Counter()

    attributes = _event_attributes(rows, found, take)
    writer.write(
        "events",
        {
            "event_id": ids,
            "parent_id": references(links.parent, ids),
            "track_id": events.track.astype(np.int32),
            "category": chosen(tuple(events.categories), events.category),
            "name": pc.fill_null(rows.column("name").take(take).combine_chunks(), "")
            if len(row)
            else pa.array([], pa.string()),
            "start_ns": events.start,
            "duration_ns": events.duration,
            "self_ns": links.own,
            "step": nullable(links.step, links.step < 0).cast(pa.int32()),
            "phase": chosen(PHASES, links.phase),
            "correlation_id": nullable(events.correlation, events.correlation == NONE),
            "launch_id": references(links.launch, ids),
            "op_id": references(links.op, ids),
            "forward_id": references(links.forward, ids),
            "site_id": nullable(lines.site, lines.site == 0),
            "stack_id": nullable(lines.stack, lines.stack == 0),
            "attribution": chosen(METHODS, lines.method),
            "precision": chosen(PRECISIONS, lines.precision),
            "module_id": nullable(lines.module, lines.module == 0),
            "flops": rows.column("flops").take(take),
            "size_bytes": rows.column("size_bytes").take(take),
            "shapes": rows.column("shapes").take(take),
            "dtypes": rows.column("dtypes").take(take),
            "attributes": attributes,
        },
    )
    counts["events"] = len(row)
    counts["merged_ends"] = len(found.merged_ends)
    writer.write("tracks", found.tracks)
    if links.steps:
        writer.write("steps", links.steps)
    for table, dimension in (("sites", lines.sites), ("stacks", lines.stacks), ("modules", lines.modules)):
        if dimension:
            writer.write(table, dimension)
    for kind, (sources, targets) in links.edges.items():
        if len(sources):
            writer.write(
                "edges",
                {
                    "source_id": ids[sources],
                    "target_rank": np.full(len(sources), writer.rank, np.int32),
                    "target_id": ids[targets],
                    "kind": pa.array([kind] * len(sources), pa.string()).dictionary_encode(),
                },
            )
    if len(found.memory_rows):
        writer.write("memory_events", memory_rows(rows, found, links, lines))
        counts["memory_events"] = len(found.memory_rows)
    if len(found.counter_rows):
        written, tables = counter_rows(rows, found)
        if tables:
            writer.write("counters", tables)
        counts["counter_rows"] = written
        counts["counters"] = len(tables)
    collectives = collective_rows(rows, found)
    if collectives:
        writer.write("collectives", collectives)
    others = np.sort(np.concatenate([found.flow_rows, found.other_rows]))
    others = np.unique(others)
    if len(others):
        writer.write("source_rows", _source_rows(rows, found, others))
    counts["source_rows"] = len(others)
    return counts


def _event_attributes(rows: pa.Table, found: Collected, take: pa.Array) -> pa.Array:
    attributes = rows.column("attributes").take(take).combine_chunks()
    if isinstance(attributes, pa.ChunkedArray):
        attributes = attributes.chunk(0) if attributes.num_chunks else pa.array([], pa.string())
    extra: dict[int, str] = {}
    for place in np.flatnonzero(found.end_of >= 0).tolist():
        end = rows.column("attributes")[int(found.end_of[place])].as_py()
        if end:
            extra[place] = f'"end":{end}'
    for place in np.flatnonzero(found.unfinished).tolist():
        extra[place] = '"unfinished":true'
    if not extra:
        return attributes
    values = attributes.to_pylist()
    for place, text in extra.items():
        old = values[place] or "{}"
        values[place] = old[:-1] + ("," if len(old) > 2 else "") + text + "}"
    return pa.array(values, pa.string())


def _source_rows(rows: pa.Table, found: Collected, which: Ints) -> dict[str, Any]:
    take = pa.array(which)
    phase_code, phases = codes(rows, "ph")
    words = pa.array([KINDS.get(p or "", p or "") for p in phases], pa.string())
    kind = words.take(pa.array(phase_code[which]))
    time = found.row_time[which]
    identity = rows.column("id").take(take)
    return {
        "kind": kind.dictionary_encode(),
        "name": pc.fill_null(rows.column("name").take(take).combine_chunks(), ""),
        "track_id": found.row_track[which].astype(np.int32),
        "timestamp_ns": nullable(time, time == NONE),
        "key": pc.utf8_trim(identity, '"'),
        "category": rows.column("cat").take(take),
        "attributes": rows.column("attributes").take(take),
    }


def write_run(
    source: Any,
    text: TraceText,
    rows: pa.Table,
    found: Collected,
    links: Links,
    lines: Lines,
    writer: RunWriter,
) -> None:
    """Everything about one trace: tables, devices, quarantine, health, manifest."""
    counts = write_tables(rows, found, links, lines, writer)
    devices = device_rows(text.top_level, found)
    if devices:
        writer.write("devices", devices)
    for row, reason in found.refused:
        writer.quarantine(_as_json(rows, row), reason)
    for lost in text.lost:
        writer.quarantine(lost.text.decode("utf-8", "replace"), lost.reason, lost.offset)
    total = rows.num_rows
    counts["quarantine"] = len(found.refused)
    counts["source_total"] = total
    counts["unreadable"] = len(text.lost)
    accounted = sum(
        counts[k]
        for k in ("events", "merged_ends", "memory_events", "counter_rows", "source_rows", "quarantine")
    )
    if accounted != total:
        raise AssertionError(f"{accounted} of {total} source rows are accounted for")
    writer.manifest.counts = dict(counts)
    tell(source, text, rows, found, links, lines, writer)


def _as_json(rows: pa.Table, row: int) -> str:
    """A refused row as the source had it, near enough to read: fields, time in microseconds."""
    import json

    data = rows.slice(row, 1).to_pylist()[0]
    if data["odd"] is not None:
        return str(data["odd"])
    result: dict[str, Any] = {k: data[k] for k in ("ph", "cat", "name", "pid", "tid") if data[k] is not None}
    for name in ("ts", "dur"):
        if data[name] is not None:
            sign, whole = ("-" if data[name] < 0 else ""), abs(data[name])
            result[name] = f"{sign}{whole // 1000}.{whole % 1000:03d}"
    if data["id"] is not None:
        result["id"] = data["id"]
    result["args"] = json.loads(data["args"]) if data["args"] else {}
    if data["attributes"]:
        result["attributes"] = json.loads(data["attributes"])
    return json.dumps(result, ensure_ascii=False)
