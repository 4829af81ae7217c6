"""Columns that batches of instructions and transfers have in common: time, place in an execution, source lines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from explorer.collectors.neuron.bulk import integers
from explorer.collectors.neuron.device_context import DeviceContext
from explorer.collectors.neuron.event_columns import constant, words
from explorer.collectors.neuron.flow_lines import FlowLine


def common_columns(device: DeviceContext, batch: pa.RecordBatch, category: str, name: str) -> dict[str, Any]:
    """Columns of events but for their lines; `__place` is each row's execution, for `with_executions`."""
    count = batch.num_rows
    start = device.clock.to_host(integers(batch, "start_ts"))
    duration = integers(batch, "duration_ns")
    place = device.executions.place(start)
    names = batch.column(name).fill_null("")
    return {
        "event_id": integers(batch, "event_id"),
        "track_id": np.asarray(batch.column("track_id")).astype(np.int32),
        "category": constant(category, count),
        "name": names.dictionary_encode(),
        "start_ns": start,
        "duration_ns": duration,
        # An engine's instructions overlap in its pipeline but do not enclose each other.
        "self_ns": duration,
        "__place": place,
    } | device.executions.columns(place)


def line_columns(
    device: DeviceContext, columns: dict[str, Any], number: np.ndarray[Any, Any]
) -> dict[str, Any]:
    """Line columns for rows with these line numbers; lines shared by several sites go to event_sites."""
    columns.pop("__place", None)
    table = device.lines.lines
    index = pa.array(number, pa.int64(), mask=number < 0)
    site = pa.array([line.sites[0] if line.sites else None for line in table], pa.int64())
    stack = pa.array([line.stack_id for line in table], pa.int64())
    shared = np.array([len(line.sites) > 1 for line in table] or [False])
    if shared.any():
        rows = np.flatnonzero((number >= 0) & shared[np.maximum(number, 0)])
        _event_sites(device, columns["event_id"][rows], number[rows])
    missing = np.where(number < 0, len(table), number)
    return {
        "site_id": site.take(index) if len(table) else pa.nulls(len(number), pa.int64()),
        "stack_id": stack.take(index) if len(table) else pa.nulls(len(number), pa.int64()),
        "attribution": words([line.attribution for line in table] + ["none"], missing),
        "precision": words([line.precision for line in table] + [None], missing),
    }


def with_executions(
    device: DeviceContext, number: np.ndarray[Any, Any], place: np.ndarray[Any, Any]
) -> np.ndarray[Any, Any]:
    """Line numbers where rows without a line of their own take those of the ops that their execution runs."""
    items = device.executions.items
    if not any(item.sites for item in items):
        return number
    lines = [
        FlowLine(
            tuple(site for site, _ in item.sites),
            item.stack_id,
            "execution",
            tuple(share for _, share in item.sites),
        )
        for item in items
    ]
    of_execution = np.array([device.lines.number(line) if line.sites else -1 for line in lines], np.int64)
    bare = np.array([not line.sites for line in device.lines.lines] + [True])[number]
    rows = np.flatnonzero(bare & (place >= 0))
    rows = rows[of_execution[place[rows]] >= 0]
    number[rows] = of_execution[place[rows]]
    return number


def _event_sites(device: DeviceContext, events: np.ndarray[Any, Any], number: np.ndarray[Any, Any]) -> None:
    if not len(events):
        return
    ids, sites, shares = [], [], []
    for line_number in np.unique(number):
        line = device.lines.lines[line_number]
        chosen = events[number == line_number]
        for site, share in zip(line.sites, line.shares):
            ids.append(chosen)
            sites.append(np.full(len(chosen), site, np.int64))
            shares.append(np.full(len(chosen), share))
    count = sum(len(each) for each in ids)
    device.bulk.write(
        "event_sites",
        {
            "event_id": np.concatenate(ids),
            "site_id": np.concatenate(sites),
            "role": constant("responsible", count),
            "share": np.concatenate(shares),
        },
    )
