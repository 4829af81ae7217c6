"""Instructions as events, with their lines, modules and work."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa

from explorer.collectors.neuron.bulk import batches, integers, optional
from explorer.collectors.neuron.device_context import DeviceContext
from explorer.collectors.neuron.line_batches import common_columns, line_columns, with_executions
from explorer.model.ids import module_id


def write_instructions(device: DeviceContext) -> None:
    """Write table Instruction as events."""
    if not device.tables.has("Instruction"):
        return
    device.track_map("engine_tracks", "SELECT DISTINCT engine, pcore_idx FROM Instruction", "engine")
    identity = device.identity("Instruction")
    condition = device.valid("Instruction")
    size = _sum_of(device, "Instruction", "hbm_read_bytes", "hbm_write_bytes")
    flops = "i.raw_flops" if device.tables.has("Instruction", "raw_flops") else "CAST(NULL AS BIGINT)"
    sql = f"""
        SELECT {identity} AS event_id, i.id, t.track_id, i.opcode, i.start_ts,
               coalesce(i.duration_ns, i.end_ts - i.start_ts) AS duration_ns, {device.lines.expression} AS line,
               {flops} AS flops, {size} AS size_bytes, {device.lines.layer_of()} AS layer
        FROM Instruction AS i
        JOIN engine_tracks AS t ON t.key IS NOT DISTINCT FROM i.engine AND t.pcore IS NOT DISTINCT FROM i.pcore_idx
        {device.lines.joins}
        WHERE {condition}
    """
    device.counts["instruction"] += batches(
        device.tables.connection, sql, lambda batch: _batch(device, batch)
    )


def _sum_of(device: DeviceContext, table: str, *columns: str) -> str:
    there = [f"i.{column}" for column in columns if device.tables.has(table, column)]
    if not there:
        return "CAST(NULL AS BIGINT)"
    return "nullif(" + " + ".join(f"coalesce({column}, 0)" for column in there) + ", 0)"


def _batch(device: DeviceContext, batch: pa.RecordBatch) -> None:
    columns = common_columns(device, batch, "instruction", "opcode")
    number = np.asarray(batch.column("line").fill_null(-1))
    number = with_executions(device, number.astype(np.int64), columns["__place"])
    columns |= line_columns(device, columns, number)
    _count_mechanisms(device, batch, number)
    columns["correlation_id"] = optional(batch, "id", pa.int64())
    columns["flops"] = optional(batch, "flops", pa.int64())
    columns["size_bytes"] = optional(batch, "size_bytes", pa.int64())
    if batch.column("layer").null_count < batch.num_rows:
        columns["module_id"] = _modules(device, batch.column("layer"))
    device.bulk.write("events", columns)


def _count_mechanisms(device: DeviceContext, batch: pa.RecordBatch, number: np.ndarray[Any, Any]) -> None:
    tracks = np.asarray(batch.column("track_id"))
    duration = integers(batch, "duration_ns")
    labels = [line.mechanism for line in device.lines.lines] + ["none"]
    for track in np.unique(tracks):
        chosen = tracks == track
        engine = (device.tracks.rows[track - device.tracks.first].thread_name or "").split(" (")[0]
        sums = np.bincount(
            np.where(number[chosen] < 0, len(labels) - 1, number[chosen]).astype(np.int64),
            weights=duration[chosen].astype(np.float64),
            minlength=len(labels),
        )
        for label, total in zip(labels, sums):
            if total:
                device.mechanisms.setdefault(label, Counter())[engine] += int(total)


def _modules(device: DeviceContext, layers: pa.Array) -> pa.Array:
    encoded = layers.dictionary_encode()
    ids = []
    for text in encoded.dictionary.to_pylist():
        path = (text or "").strip().strip("/").replace("/", ".")
        device.lines.modules.setdefault(path, text)
        ids.append(module_id(path, "") if path else None)
    return pa.array(ids, pa.int64()).take(encoded.indices)
