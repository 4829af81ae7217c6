"""Idle time of the compute engines, each gap with what ended it: the wait of the first instruction behind it.

Three ways to know, in this order, and each gap says which:
flow         a dependency of the profile (table Flow): the predecessor of that instruction that finished last, within the gap
semaphore    an update of a semaphore that names an engine or a queue, the last one within the gap
coincidence  no dependency is recorded: the work of another lane that ended last within the gap
Gaps shorter than SHORT_NS are start-up of the next instruction and are not explained.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from explorer.analysis.engine import Engine
from explorer.analysis.neuron.lanes import COLLECTIVE, DMA, SPILL, SPILL_CONDITION, CoreLanes, core_lanes
from explorer.analysis.neuron.overlap import profile_window
from explorer.model.neuron_engines import COMPUTE_ENGINES, ENGINE_OF_NAME, ENGINES

SHORT_NS = 100
"""An instruction's fixed cost is about 60 to 100 cycles near 1 GHz (public NKI guides): shorter gaps are that."""

BATCH_ROWS = 122_880
WORD = pa.dictionary(pa.int32(), pa.string())
CAUSES = ("dma", "input", "spill", "engine", "collective", "short", "start", "end", "unknown")
_SCHEMA = pa.schema(
    [
        pa.field("rank", pa.int32()),
        *(pa.field(name, WORD) for name in ("profile", "device")),
        pa.field("core", pa.int32()),
        pa.field("engine", WORD),
        pa.field("start_ns", pa.int64()),
        pa.field("duration_ns", pa.int64()),
        *(pa.field(name, WORD) for name in ("cause", "blocker", "method")),
        pa.field("event_id", pa.int64()),
    ]
)
_INSTRUCTION = "lower(f.in_table) = 'instruction'"
_BLOCK = "lower(f.in_table) IN ('dmapacketaggregated', 'dma_packet_aggregated', 'dma_block', 'dmablock')"
_TARGET = "lower(f.out_table) = 'instruction'"


def compute(engine: Engine) -> pa.Table:
    """The computed table neuron_idle."""
    profiles: dict[tuple[int, str], list[CoreLanes]] = {}
    for core in core_lanes(engine):
        profiles.setdefault((core.rank, core.profile), []).append(core)
    parts = [_profile(engine, cores) for cores in profiles.values() if any(core.lanes for core in cores)]
    return pa.concat_tables([_SCHEMA.empty_table(), *parts]).unify_dictionaries()


def _gaps(cores: list[CoreLanes], window: tuple[int, int]) -> pa.Table:
    """Every gap of every engine that worked at all, with the coincidence candidate."""
    columns: dict[str, list[Any]] = {
        name: [] for name in ("core", "engine", "start", "end", "edge", "lane", "lane_end")
    }
    for core in cores:
        for name in COMPUTE_ENGINES:
            busy = core.lane(name)
            if not len(busy.start_ns):
                continue
            start = np.r_[window[0], busy.end_ns]
            end = np.r_[busy.start_ns, window[1]]
            # Where in the engine's life the gap lies: 1 before its first instruction, 2 after its last, 0 between.
            edge = np.zeros(len(start), np.int8)
            edge[0], edge[-1] = 1, 2
            keep = end > start
            start, end, edge = start[keep], end[keep], edge[keep]
            lane, lane_end = _coincidence(core, name, start, end)
            count = len(start)
            for key, values in zip(
                columns,
                (
                    np.full(count, core.core),
                    np.full(count, ENGINES.index(name)),
                    start,
                    end,
                    edge,
                    lane,
                    lane_end,
                ),
            ):
                columns[key].append(values)
    return pa.table(
        {name: np.concatenate(parts) if parts else np.zeros(0, np.int64) for name, parts in columns.items()}
    )


_OTHERS = (*ENGINES, DMA, SPILL, COLLECTIVE)


def _coincidence(core: CoreLanes, name: str, start: Any, end: Any) -> tuple[Any, Any]:
    """Index in _OTHERS of the lane that ended last inside each gap (-1: none), and when."""
    ends, lanes = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for number, other in enumerate(_OTHERS):
        if other != name:
            busy = core.lane(other)
            ends.append(busy.end_ns)
            lanes.append(np.full(len(busy.end_ns), number))
    all_ends, all_lanes = np.concatenate(ends), np.concatenate(lanes)
    # Of lanes that end at one moment the later in the list wins: spill over DMA, collective over both.
    order = np.lexsort((all_lanes, all_ends))
    all_ends, all_lanes = all_ends[order], all_lanes[order]
    place = np.searchsorted(all_ends, end, side="right") - 1
    safe = np.maximum(place, 0)
    if not len(all_ends):
        return np.full(len(start), -1), np.zeros(len(start), np.int64)
    hit = (place >= 0) & (all_ends[safe] > start)
    return np.where(hit, all_lanes[safe], -1), np.where(hit, all_ends[safe], 0)


def _profile(engine: Engine, cores: list[CoreLanes]) -> pa.Table:
    first = cores[0]
    window = profile_window(cores)
    gaps = _gaps(cores, window)
    length = gaps.column("end").to_numpy() - gaps.column("start").to_numpy()
    plain = (length < SHORT_NS) | (gaps.column("edge").to_numpy() == 2)
    rest = _plain(first, gaps.filter(pa.array(plain)))
    gaps = gaps.filter(pa.array(~plain))
    gaps = gaps.append_column("gap", pa.array(np.arange(gaps.num_rows)))
    engine_case = (
        "CASE lower(i.engine) "
        + " ".join(f"WHEN '{text}' THEN {ENGINES.index(name)}" for text, name in ENGINE_OF_NAME.items())
        + " ELSE -1 END"
    )
    lane_names = "[" + ", ".join(f"'{name}'" for name in _OTHERS) + "]"
    aliases = ", ".join(f"'{text}': '{name}'" for text, name in ENGINE_OF_NAME.items())
    offset = first.offset_ns
    shift = engine.sql(
        "SELECT any_value(id_offset) AS x FROM neuron.EventOffsets WHERE rank = $1 AND profile = $2 AND table_name = 'Instruction'",
        [first.rank, first.profile],
    ).rows()[0]["x"]
    event = f"f.id + ({shift})" if shift is not None else "CAST(NULL AS BIGINT)"
    here = "rank = $1 AND profile = $2"
    engine.relations.prepare(
        "neuron.Instruction neuron.Flow neuron.DmaPacketAggregated neuron.SemaphoreUpdate"
    )
    engine.connection.register("__neuron_gaps", gaps)
    try:
        reader = engine.connection.sql(
            f"""
            WITH gap AS (SELECT * FROM __neuron_gaps),
            -- The first instruction behind each gap.
            firsts AS (
                SELECT g.gap, g.core, g.start, g."end", min(i.id) AS id
                FROM neuron.Instruction AS i JOIN gap AS g
                  ON i.start_ts = g."end" - ({offset}) AND coalesce(i.pcore_idx, 0) = g.core AND {engine_case} = g.engine
                WHERE i.{here.replace("AND ", "AND i.")}
                GROUP BY ALL),
            before AS (
                SELECT f.in_table, f.in_id, x.gap, x.start, x."end" FROM firsts AS x JOIN neuron.Flow AS f ON f.out_id = x.id
                WHERE f.{here.replace("AND ", "AND f.")} AND {_TARGET}),
            causes AS (
                SELECT f.gap, i.end_ts + ({offset}) AS at_ns, 'engine' AS cause, i.engine AS blocker
                FROM before AS f JOIN neuron.Instruction AS i ON i.id = f.in_id AND {_INSTRUCTION}
                WHERE i.{here.replace("AND ", "AND i.")} AND i.end_ts + ({offset}) > f.start AND i.end_ts + ({offset}) <= f."end"
                UNION ALL
                SELECT f.gap, d.end_ts + ({offset}),
                       CASE WHEN {SPILL_CONDITION} THEN 'spill' WHEN queue_name ILIKE 'qSyncIO%' THEN 'input' ELSE 'dma' END,
                       d.queue_name
                FROM before AS f JOIN neuron.DmaPacketAggregated AS d ON d.id = f.in_id AND {_BLOCK}
                WHERE d.{here.replace("AND ", "AND d.")} AND d.end_ts + ({offset}) > f.start AND d.end_ts + ({offset}) <= f."end"),
            flows AS (SELECT gap, arg_max(cause, at_ns) AS cause, arg_max(blocker, at_ns) AS blocker FROM causes GROUP BY gap),
            updates AS (
                SELECT coalesce(s.pcore_idx, 0) AS core, s.timestamp + ({offset}) AS at_ns, s.name FROM (
                    SELECT pcore_idx, timestamp, unnest([id, update_source]) AS name FROM neuron.SemaphoreUpdate WHERE {here}) AS s
                WHERE name LIKE 'q%' OR lower(name) IN (SELECT unnest(map_keys(MAP {{{aliases}}})))),
            signals AS (
                SELECT g.gap, u.name FROM gap AS g ASOF JOIN updates AS u ON u.core = g.core AND g."end" >= u.at_ns
                WHERE u.at_ns > g.start)
            SELECT CAST({first.rank} AS INTEGER) AS rank, $2 AS profile, 'neuron:{first.device_index}' AS device,
                   CAST(g.core AS INTEGER) AS core, {lane_names}[g.engine + 1] AS engine, g.start AS start_ns,
                   g."end" - g.start AS duration_ns,
                   CASE WHEN w.cause IS NOT NULL THEN w.cause
                        WHEN s.name ILIKE '%spill%' THEN 'spill'
                        WHEN s.name ILIKE 'qSyncIO%' THEN 'input'
                        WHEN s.name LIKE 'q%' THEN 'dma'
                        WHEN s.name IS NOT NULL THEN 'engine'
                        WHEN g.lane >= 0 AND g.lane < {len(ENGINES)} THEN 'engine'
                        WHEN g.lane >= 0 THEN {lane_names}[g.lane + 1]
                        WHEN g.edge = 1 THEN 'start' ELSE 'unknown' END AS cause,
                   coalesce(MAP {{{aliases}}}[lower(w.blocker)], w.blocker, s.name,
                            CASE WHEN g.lane >= 0 THEN {lane_names}[g.lane + 1] END) AS blocker,
                   CASE WHEN w.cause IS NOT NULL THEN 'flow'
                        WHEN s.name IS NOT NULL THEN 'semaphore' WHEN g.lane >= 0 THEN 'coincidence' ELSE 'none' END AS method,
                   {event} AS event_id
            FROM gap AS g LEFT JOIN firsts AS f USING (gap) LEFT JOIN flows AS w USING (gap) LEFT JOIN signals AS s USING (gap)
            """,
            params=[first.rank, first.profile],
        ).to_arrow_reader(BATCH_ROWS)
        batches = [_encoded(batch) for batch in reader]
    finally:
        engine.connection.unregister("__neuron_gaps")
    return pa.concat_tables([rest, *(pa.Table.from_batches([batch]) for batch in batches)])


def _encoded(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Strings as dictionaries, batch by batch, so that millions of gaps stay small."""
    columns = [
        column.dictionary_encode().cast(WORD) if pa.types.is_string(column.type) else column
        for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, batch.schema.names)


def _plain(core: CoreLanes, gaps: pa.Table) -> pa.Table:
    """Gaps that need no explanation: short ones, and the one behind an engine's last instruction."""
    count = gaps.num_rows
    start, end = gaps.column("start").to_numpy(), gaps.column("end").to_numpy()

    def words(codes: Any, texts: list[str]) -> pa.Array:
        return pa.DictionaryArray.from_arrays(pa.array(np.asarray(codes, np.int32)), pa.array(texts))

    columns = {
        "rank": pa.array(np.full(count, core.rank, np.int32)),
        "profile": words(np.zeros(count), [core.profile]),
        "device": words(np.zeros(count), [f"neuron:{core.device_index}"]),
        "core": pa.array(gaps.column("core").to_numpy().astype(np.int32)),
        "engine": words(gaps.column("engine").to_numpy(), list(ENGINES)),
        "start_ns": pa.array(start),
        "duration_ns": pa.array(end - start),
        "cause": words(gaps.column("edge").to_numpy() == 2, ["short", "end"]),
        "blocker": pa.nulls(count, WORD),
        "method": words(np.zeros(count), ["none"]),
        "event_id": pa.nulls(count, pa.int64()),
    }
    return pa.table(columns).select(_SCHEMA.names).cast(_SCHEMA)
