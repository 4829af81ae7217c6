"""Tables of few rows as events, one by one: collectives, barriers, throttling, errors."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa

from explorer.collectors.neuron.collective_row import collective_row
from explorer.collectors.neuron.device_context import DeviceContext
from explorer.collectors.neuron.event_columns import column
from explorer.collectors.neuron.lines import Line
from explorer.model.neuron_engines import ENGINE_OF_NAME, engine_name


def write_single_events(device: DeviceContext) -> None:
    """Write collectives and their steps, core barriers, throttling and errors as events."""
    events: list[dict[str, Any]] = []
    collectives: list[dict[str, Any]] = []
    triggers = _trigger_lines(device)
    for row in device.tables.rows(
        "SELECT *, row_number() OVER (ORDER BY start_ts, op_id) AS place FROM CcOp ORDER BY place"
    ):
        line = triggers.get(row.pop("place"))
        name = f"collectives {row['stream_id']}" if row["stream_id"] is not None else "collectives"
        event = _event(device, row, "CcOp", "collective", row["operation"] or "collective", ("stream", name))
        if event:
            if line is not None:
                event |= {"site_id": line.sites[0], "stack_id": line.stack_id}
                event |= {"attribution": "flow", "precision": "inferred"}
            events.append(event)
            collectives.append(collective_row(event["event_id"], row))
    for row in device.tables.rows("SELECT * FROM CcInstruction ORDER BY start_ts"):
        # Steps of a collective on its own core: shown beside it, not counted as work twice.
        track = ("stream", f"collective core {row['core_idx']}")
        if event := _event(device, row, "CcInstruction", "other", row["description"] or "step", track):
            events.append(event)
    for row in device.tables.rows("SELECT * FROM CoreBarriers ORDER BY start_ts"):
        track = ("engine", f"{engine_name(row['engine_name'] or '')} barriers")
        if event := _event(device, row, "CoreBarriers", "semaphore", "core barrier", track):
            events.append(event)
    for row in device.tables.rows("SELECT * FROM Throttle ORDER BY timestamp"):
        row |= {"start_ts": row.pop("timestamp"), "duration_ns": row.pop("duration"), "end_ts": None}
        name = f"throttle {row['type'] or ''}".strip()
        if event := _event(device, row, "Throttle", "other", name, ("stream", "throttling")):
            events.append(event)
    for row in device.tables.rows("SELECT * FROM Error ORDER BY timestamp"):
        row |= {"start_ts": row.pop("timestamp"), "duration_ns": 0, "end_ts": None}
        name = row["description"] or "error"
        if event := _event(device, row, "Error", "other", name, ("stream", "errors")):
            events.append(event)
    if events:
        device.bulk.write("events", {name: column(name, events) for name in events[0]})
    if collectives:
        device.writer.write("collectives", collectives)


def _event(
    device: DeviceContext, row: dict[str, Any], table: str, category: str, name: str, track: tuple[str, str]
) -> dict[str, Any] | None:
    start, duration = row["start_ts"], row["duration_ns"]
    if duration is None and start is not None and row["end_ts"] is not None:
        duration = row["end_ts"] - start
    if start is None or duration is None or duration < 0:
        reason = "negative_duration" if duration is not None and duration < 0 else "no_time"
        device.writer.quarantine({"table": table, "profile": device.profile} | row, reason)
        device.counts["quarantined"] += 1
        return None
    host = device.clock.to_host(np.array([start], np.int64))
    place = device.executions.place(host)[0]
    execution = device.executions.items[place] if place >= 0 else None
    number = device.next_id
    device.next_id += 1
    device.counts[category] += 1
    rest = {k: v for k, v in row.items() if v is not None and k not in ("start_ts", "end_ts", "duration_ns")}
    return {
        "event_id": number,
        "track_id": device.track(track[0], track[1], row.get("pcore_idx")),
        "category": category,
        "name": name,
        "start_ns": int(host[0]),
        "duration_ns": duration,
        "self_ns": duration,
        "correlation_id": row.get("op_id") if table == "CcOp" else row.get("id"),
        "launch_id": execution.launch_id if execution else None,
        "op_id": execution.op_ids[0] if execution and execution.op_ids else None,
        "step": execution.step if execution else None,
        "site_id": None,
        "stack_id": None,
        "attribution": "none" if category == "collective" else None,
        "precision": None,
        "size_bytes": row.get("input_size"),
        "attributes": json.dumps({"table": table} | rest, default=str),
    }


def _trigger_lines(device: DeviceContext) -> dict[int, Line]:
    """Lines of collectives by their place in time: that of the instruction that triggered each on its engine."""
    if not (device.tables.has("CcOp", "trigger_start_ts") and device.tables.has("Instruction")):
        return {}
    aliases = pa.table({"alias": list(ENGINE_OF_NAME), "name": list(ENGINE_OF_NAME.values())})
    device.tables.connection.register("engine_aliases", aliases)
    device.tables.connection.execute(
        """
        CREATE OR REPLACE TEMP TABLE trigger_hits AS
        WITH ops AS (
            SELECT row_number() OVER (ORDER BY start_ts, op_id) AS place, trigger_start_ts, a.name AS engine
            FROM CcOp LEFT JOIN engine_aliases AS a ON a.alias = lower(trigger_engine))
        SELECT ops.place, i.* FROM ops JOIN Instruction AS i
          ON ops.trigger_start_ts >= i.start_ts AND ops.trigger_start_ts <= i.end_ts AND i.engine = ops.engine
        """
    )
    rows = device.tables.connection.execute(
        f"""
        SELECT i.place, arg_max({device.lines.expression}, i.start_ts) FROM trigger_hits AS i {device.lines.joins}
        WHERE {device.lines.expression} IS NOT NULL GROUP BY i.place
        """
    ).fetchall()
    return {place: device.lines.lines[number] for place, number in rows if device.lines.lines[number].sites}
