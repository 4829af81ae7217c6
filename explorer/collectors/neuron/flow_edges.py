"""Dependencies (table Flow) as edges between events."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from explorer.collectors.neuron.bulk import batches, integers
from explorer.collectors.neuron.device_context import DeviceContext
from explorer.model.neuron_flow import is_table

_EDGE_KINDS = {"semaphore": "semaphore", "flow": "data", "output": "data", "anti": "data"}


def write_edges(device: DeviceContext) -> None:
    """Table Flow between rows that became events."""
    if not device.tables.has("Flow"):
        return
    cases = {}
    for side in ("in", "out"):
        whens = " ".join(
            f"WHEN {is_table(f'{side}_table', table)} THEN {side}_id + ({offset})"
            for table, offset in device.offsets.items()
        )
        cases[side] = f"CASE {whens} END" if whens else "CAST(NULL AS BIGINT)"
    sql = f"""
        SELECT source, target, kind FROM (
            SELECT {cases["in"]} AS source, {cases["out"]} AS target, lower(coalesce(dependency_type, 'flow')) AS kind
            FROM Flow) WHERE source IS NOT NULL AND target IS NOT NULL
    """

    def work(batch: pa.RecordBatch) -> None:
        kinds = batch.column("kind").dictionary_encode()
        named = [
            _EDGE_KINDS.get(text, "semaphore" if "sem" in text else "data")
            for text in kinds.dictionary.to_pylist()
        ]
        device.bulk.write(
            "edges",
            {
                "source_id": integers(batch, "source"),
                "target_rank": np.full(batch.num_rows, device.writer.rank, np.int32),
                "target_id": integers(batch, "target"),
                "kind": pa.DictionaryArray.from_arrays(kinds.indices, pa.array(named, pa.string())),
            },
        )

    written = batches(device.tables.connection, sql, work)
    total = device.tables.sources["Flow"].rows
    device.counts["flow"] += written
    if written < total:
        device.writer.health(
            "neuron_unresolved_flows",
            "info",
            total - written,
            f"Dependencies of profile {device.profile} name tables that hold no events; they stay in neuron.Flow.",
            affects="edges",
        )
