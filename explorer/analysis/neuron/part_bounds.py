"""The bounds model for parts of a profile: regions or source lines, each on each physical core.

Definitions are those of neuron_bounds (public profiling skills of AWS), over a part's own instructions and transfers:
memory          time with one of its transfers under way; ideal: their bytes at full DMA bandwidth (packets over 4 bytes,
                instruction fetches left out); without reloads: each input or output tensor that they move, once
compute         time with one of its instructions on the Tensor engine; ideal: its matrix work at that engine's peak;
                useful: that without transposes
pipeline        the busiest engine alone
Times are interval unions, so a part's instructions that overlap count once; an instruction or a transfer of several parts is
at work in each of them, while its flops and bytes are shared between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from explorer.analysis.engine import Engine
from explorer.analysis.neuron.lanes import END, ENGINE_CODE, ProfileKey
from explorer.model.neuron_engines import COMPUTE_ENGINES, ENGINES

Numbers = npt.NDArray[np.int64]
Reals = npt.NDArray[np.float64]

INSTRUCTIONS = f"""
SELECT id, CAST(coalesce(pcore_idx, 0) AS INTEGER) AS core, CAST({ENGINE_CODE} AS TINYINT) AS lane, start_ts, {END} AS end_ts,
       CAST(CASE WHEN opcode ILIKE '%matmul%' THEN coalesce(adjusted_flops, 0) ELSE 0 END AS BIGINT) AS flops,
       CAST(CASE WHEN opcode ILIKE '%matmul%' AND upper(tensor_instruction_type) = 'TRANSPOSE' THEN coalesce(adjusted_flops, 0) ELSE 0 END
            AS BIGINT) AS transposes"""
"""SELECT list of the columns that `Work` is made of; the query adds FROM, and `part` where SQL knows it."""

_PACKETS = "SELECT count(*) AS n FROM neuron.DmaPacket WHERE rank = $1 AND profile = $2"
_TRANSFERS = """
SELECT p.part, CAST(coalesce(d.pcore_idx, 0) AS INTEGER) AS core, d.start_ts, coalesce(d.end_ts, d.start_ts + d.duration_ns) AS end_ts,
       CASE WHEN d.queue_type IS DISTINCT FROM 'instruction' AND d.transfer_bytes > 4 THEN d.transfer_bytes * p.share ELSE 0 END AS moved
FROM __neuron_pairs AS p JOIN neuron.{table} AS d ON d.{key} = p.block
WHERE d.rank = $1 AND d.profile = $2 AND d.start_ts IS NOT NULL AND coalesce(d.end_ts, d.start_ts + d.duration_ns) IS NOT NULL"""
_TENSORS = """
SELECT part, core, sum(size)::DOUBLE AS size FROM (
    SELECT DISTINCT p.part, t.variable_name, coalesce(t.pcore_idx, 0)::INTEGER AS core, t.size
    FROM __neuron_pairs AS p JOIN neuron.DmaPacketAggregated AS d ON d.id = p.block
    JOIN neuron.TensorInfo AS t ON t.rank = d.rank AND t.profile = d.profile AND t.variable_name = d.variable
     AND coalesce(t.pcore_idx, 0) = coalesce(d.pcore_idx, 0)
    WHERE d.rank = $1 AND d.profile = $2 AND t.type IN ('IN', 'OUT'))
GROUP BY ALL"""
_PEAKS = """
SELECT max(dma_ddr_bandwidth) AS bandwidth,
       max(tensor_engine_num_rows * tensor_engine_num_cols * 2 * tensor_engine_clock_freq) AS flop_per_ns
FROM neuron.Metadata WHERE rank = $1 AND profile = $2"""


@dataclass(frozen=True)
class Work:
    """Instructions, each with the part it belongs to; `share` of its work where it belongs to several, once for each."""

    part: Numbers
    core: npt.NDArray[np.int32]
    lane: npt.NDArray[np.int8]
    start: Numbers
    end: Numbers
    flops: Numbers
    transposes: Numbers
    share: Reals


def part_bounds(
    engine: Engine, key: ProfileKey, work: Work, pairs: pa.Table, keys: dict[str, Sequence[Any]]
) -> pa.Table:
    """One row per part and core that has instructions or transfers.

    Args:
        pairs: (block, part, share): which transfers (ids of DmaPacketAggregated) belong to which parts.
        keys: columns that name the parts, in their order.
    """
    parameters = [key.rank, key.profile]
    packets = engine.sql(_PACKETS, parameters).rows()[0]["n"]
    table, column = ("DmaPacket", "packet_aggregation_id") if packets else ("DmaPacketAggregated", "id")
    engine.connection.register("__neuron_pairs", pairs)
    try:
        moves = engine.sql(_TRANSFERS.format(table=table, key=column), parameters).arrow()
        tensors = engine.sql(_TENSORS, parameters).arrow()
    finally:
        engine.connection.unregister("__neuron_pairs")
    peaks = engine.sql(_PEAKS, parameters).rows()[0]
    moved_core = moves.column("core").to_numpy()
    cores = max([int(column.max()) for column in (work.core, moved_core) if len(column)], default=0) + 1
    count = len(next(iter(keys.values()))) * cores
    group = work.part * cores + work.core
    moved = moves.column("part").to_numpy() * cores + moved_core
    moved_start, moved_end = moves.column("start_ts").to_numpy(), moves.column("end_ts").to_numpy()
    busy = {}
    for lane, name in enumerate(COMPUTE_ENGINES):
        rows = np.flatnonzero(work.lane == lane)
        busy[name] = union_by_group(group[rows], work.start[rows], work.end[rows], count)[0]
    memory = union_by_group(moved, moved_start, moved_end, count)[0]
    active, first, last = union_by_group(
        np.r_[group, moved], np.r_[work.start, moved_start], np.r_[work.end, moved_end], count
    )
    there = np.flatnonzero(np.bincount(np.r_[group, moved], minlength=count))
    engines = np.stack([busy[name][there] for name in COMPUTE_ENGINES])
    busiest, pipeline = engines.argmax(axis=0), engines.max(axis=0)
    bound = np.maximum(memory[there], pipeline)
    sizes = np.zeros(count)
    sizes[tensors.column("part").to_numpy() * cores + tensors.column("core").to_numpy()] = tensors.column(
        "size"
    ).to_numpy()
    flops = np.bincount(group, weights=work.flops * work.share, minlength=count)
    transposes = np.bincount(group, weights=work.transposes * work.share, minlength=count)
    moved_bytes = np.bincount(moved, weights=moves.column("moved").to_numpy(), minlength=count)
    per_byte = 1e9 / peaks["bandwidth"] if peaks["bandwidth"] else None
    per_flop = 1 / peaks["flop_per_ns"] if peaks["flop_per_ns"] else None
    names = [ENGINES[place] for place in busiest]
    place = pa.array(there // cores)
    rows_of: dict[str, Any] = {
        "rank": np.full(len(there), key.rank, np.int32),
        "profile": [key.profile] * len(there),
        "device": [f"neuron:{key.device_index}"] * len(there),
        "core": (there % cores).astype(np.int32),
        **{name: pa.array(values).take(place) for name, values in keys.items()},
        "instructions": np.bincount(group, weights=work.share, minlength=count)[there],
        "start_ns": first[there] + key.offset_ns,
        "end_ns": last[there] + key.offset_ns,
        "active_ns": active[there],
        "memory_ns": memory[there],
        "memory_ideal_ns": _time(moved_bytes[there], per_byte),
        "memory_no_reload_ns": _time(sizes[there], per_byte),
        "compute_ns": busy["Tensor"][there],
        "compute_ideal_ns": _time(flops[there], per_flop),
        "compute_useful_ns": _time((flops - transposes)[there], per_flop),
        "pipeline_ns": pipeline,
        "busiest_engine": pa.array(names, pa.string(), mask=pipeline == 0),
        "bound": [
            "memory" if wait >= busy_ns else "compute" if name == "Tensor" else name
            for wait, busy_ns, name in zip(memory[there], pipeline, names)
        ],
        "bound_ns": bound,
        "speedup_limit": pa.array(active[there] / np.maximum(bound, 1), mask=bound == 0),
    }
    return pa.table(rows_of)


def union_by_group(
    group: Numbers, start: Numbers, end: Numbers, count: int
) -> tuple[Numbers, Numbers, Numbers]:
    """Length of the union of each group's intervals, their first start and last end; one sort for all groups."""
    busy, first, last = (np.zeros(count, np.int64) for _ in range(3))
    if not len(group):
        return busy, first, last
    low = int(start.min())
    width = int(end.max()) - low + 1
    # Groups are laid one behind the other in time, so that nothing of one can touch another.
    begin, finish = start - low + group * width, end - low + group * width
    order = np.argsort(begin, kind="stable")
    begin, sorted_group = begin[order], group[order]
    reached = np.maximum.accumulate(finish[order])
    before = np.r_[np.int64(-1), reached[:-1]]
    new = np.maximum(0, reached - np.maximum(begin, before))
    busy[:] = np.bincount(sorted_group, weights=new.astype(np.float64), minlength=count)
    edges = np.flatnonzero(np.r_[True, sorted_group[1:] != sorted_group[:-1]])
    present = sorted_group[edges]
    first[present] = begin[edges] + low - present * width
    last[present] = reached[np.r_[edges[1:] - 1, len(group) - 1]] + low - present * width
    return busy, first, last


def _time(amount: npt.NDArray[Any], per_unit: float | None) -> pa.Array:
    if per_unit is None:
        return pa.nulls(len(amount), pa.int64())
    return pa.array(np.rint(amount * per_unit).astype(np.int64))
