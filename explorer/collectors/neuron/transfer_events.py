"""DMA blocks, and packets without one, as events; their lines are those of the instructions they feed or drain."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa

from explorer.collectors.neuron.bulk import batches, optional
from explorer.collectors.neuron.device_context import DeviceContext
from explorer.collectors.neuron.flow_lines import FlowLine
from explorer.collectors.neuron.line_batches import common_columns, line_columns, with_executions
from explorer.model.neuron_flow import is_table


def write_transfers(device: DeviceContext) -> None:
    """Write DMA blocks, and the packets that lack one, as events."""
    connection = device.tables.connection
    blocks, packets = device.tables.has("DmaPacketAggregated"), device.tables.has("DmaPacket")
    if blocks:
        device.track_map(
            "queue_tracks",
            "SELECT DISTINCT queue_name || coalesce('.' || queue_idx, ''), pcore_idx FROM DmaPacketAggregated",
            "queue",
        )
        _dma_lines(device)
        identity = device.identity("DmaPacketAggregated")
        condition = device.valid("DmaPacketAggregated")
        sql = f"""
            SELECT {identity} AS event_id, i.id, t.track_id,
                   coalesce(nullif(i.op, ''), 'dma') AS name, i.start_ts,
                   coalesce(i.duration_ns, i.end_ts - i.start_ts) AS duration_ns, l.line, i.transfer_bytes AS size_bytes
            FROM DmaPacketAggregated AS i
            JOIN queue_tracks AS t ON t.key IS NOT DISTINCT FROM i.queue_name || coalesce('.' || i.queue_idx, '')
              AND t.pcore IS NOT DISTINCT FROM i.pcore_idx
            LEFT JOIN dma_lines AS l ON l.id = i.id
            WHERE {condition}
        """
        device.counts["dma"] += batches(connection, sql, lambda batch: _batch(device, batch))
    if packets:
        # Packets of dynamic or unknown queues may lack a block: they are events of their own.
        lonely = "packet_aggregation_id NOT IN (SELECT id FROM DmaPacketAggregated)" if blocks else "true"
        connection.execute(
            f"CREATE OR REPLACE TEMP TABLE LonelyPacket AS SELECT * FROM DmaPacket WHERE coalesce({lonely}, true)"
        )
        if device.tables.value("SELECT count(*) FROM LonelyPacket"):
            _lonely_packets(device)


def _lonely_packets(device: DeviceContext) -> None:
    name = "coalesce(queue_name, queue_type, 'unknown') || coalesce('.' || queue_idx, '')"
    device.track_map("packet_tracks", f"SELECT DISTINCT {name}, pcore_idx FROM LonelyPacket", "queue")
    identity = device.identity("LonelyPacket")
    device.offsets.pop("LonelyPacket", None)
    condition = device.valid("LonelyPacket")
    sql = f"""
        SELECT {identity} AS event_id, i.id, t.track_id, 'dma_packet' AS name, start_ts,
               coalesce(duration_ns, end_ts - start_ts) AS duration_ns, CAST(NULL AS INTEGER) AS line,
               transfer_bytes AS size_bytes
        FROM LonelyPacket AS i
        JOIN packet_tracks AS t ON t.key IS NOT DISTINCT FROM {name} AND t.pcore IS NOT DISTINCT FROM i.pcore_idx
        WHERE {condition}
    """
    device.counts["dma"] += batches(device.tables.connection, sql, lambda batch: _batch(device, batch))


def _batch(device: DeviceContext, batch: pa.RecordBatch) -> None:
    columns = common_columns(device, batch, "dma", "name")
    number = np.asarray(batch.column("line").fill_null(-1)).astype(np.int64)
    columns |= line_columns(device, columns, with_executions(device, number, columns["__place"]))
    columns["correlation_id"] = optional(batch, "id", pa.int64())
    columns["size_bytes"] = optional(batch, "size_bytes", pa.int64())
    device.bulk.write("events", columns)


def _dma_lines(device: DeviceContext) -> None:
    """dma_lines(id, line): a transfer's line is that of the instructions it feeds or drains (table Flow)."""
    connection = device.tables.connection
    empty = pa.table({"id": pa.array([], pa.int64()), "line": pa.array([], pa.int32())})
    if not device.tables.has("Flow") or not device.tables.has("Instruction"):
        connection.register("dma_lines", empty)
        return
    line = device.lines.expression
    connection.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE dma_sets AS
        WITH touched AS (
            SELECT out_id AS id, in_id AS instruction FROM Flow
            WHERE {is_table("in_table", "Instruction")} AND {is_table("out_table", "DmaPacketAggregated")}
            UNION
            SELECT in_id, out_id FROM Flow
            WHERE {is_table("out_table", "Instruction")} AND {is_table("in_table", "DmaPacketAggregated")})
        SELECT touched.id, CAST(list_sort(list(DISTINCT {line})) AS VARCHAR) AS set
        FROM touched JOIN Instruction AS i ON i.id = touched.instruction {device.lines.joins}
        WHERE {line} IS NOT NULL
        GROUP BY touched.id
        """
    )
    sets, numbers = [], []
    for (text,) in connection.execute("SELECT DISTINCT set FROM dma_sets").fetchall():
        lines = [device.lines.lines[number] for number in json.loads(text)]
        sites = tuple(dict.fromkeys(site for each in lines for site in each.sites))
        if sites:
            sets.append(text)
            numbers.append(device.lines.number(FlowLine(sites, lines[0].stack_id, "flow")))
    table = pa.table({"set": pa.array(sets, pa.string()), "line": pa.array(numbers, pa.int32())})
    connection.register("dma_set_lines", table)
    connection.execute(
        "CREATE OR REPLACE TEMP VIEW dma_lines AS SELECT id, line FROM dma_sets JOIN dma_set_lines USING (set)"
    )
