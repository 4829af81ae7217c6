"""Busy time of every lane of a NeuronCore: engines, DMA, spill traffic, collectives, throttling; overlaps counted once.

Times are the run's: device time plus the profile's clock offset. Lanes are kept per physical core; what a profile records
for the logical core as a whole (collectives) counts on each of its cores.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from explorer.analysis.engine import Engine
from explorer.analysis.intervals import Intervals
from explorer.analysis.neuron.interval_sets import union_of
from explorer.model.neuron_engines import COMPUTE_ENGINES, ENGINE_OF_NAME, ENGINES

DMA, SPILL, COLLECTIVE, THROTTLE = "dma", "spill", "collective", "throttle"
STATIC, SOFTWARE, HARDWARE = "dma_static", "dma_software_dynamic", "dma_hardware_dynamic"
LANES = (*ENGINES, DMA, STATIC, SOFTWARE, HARDWARE, SPILL, COLLECTIVE, THROTTLE)
NO_ID = np.iinfo(np.int64).max

SPILL_CONDITION = "(source LIKE '%VIRTUAL%' OR dest LIKE '%VIRTUAL%' OR queue_name ILIKE '%spill%')"
"""A transfer from or to spill space: the reference names it [[VIRTUAL]]; spill queues carry it in their names."""


@dataclass
class CoreLanes:
    """One physical core of one profile. `offset_ns` turns its device times into the run's.

    `firsts` has the official id of the instruction that begins each interval of an engine (the smallest of several that start
    together; NO_ID where it has none).
    """

    rank: int
    profile: str
    device_index: int
    core: int
    offset_ns: int
    lanes: dict[str, Intervals] = field(default_factory=dict)
    firsts: dict[str, npt.NDArray[np.int64]] = field(default_factory=dict)
    known: dict[Any, Any] = field(default_factory=dict, repr=False)
    """What was computed of these lanes before, by what and with which arguments"""

    def lane(self, name: str) -> Intervals:
        """Busy time of a lane; empty where the profile has none."""
        return self.lanes.get(name) or Intervals.of([], [])

    @cached_property
    def compute(self) -> Intervals:
        """Time in which at least one of the four compute engines works."""
        return union_of([self.lane(name) for name in COMPUTE_ENGINES])


@dataclass(frozen=True)
class ProfileKey:
    """A profile of a run."""

    rank: int
    profile: str
    device_index: int
    offset_ns: int


_CACHE: WeakKeyDictionary[Engine, list[CoreLanes]] = WeakKeyDictionary()
WHOLE = -1
"""Core number of lanes that are those of all physical cores of a profile together."""


def profile_keys(engine: Engine) -> list[ProfileKey]:
    """Device profiles of a run; [] for a run without any."""
    if not any(name == "neuron/EventOffsets" for name in engine.reader.extra_tables):
        return []
    rows = engine.sql(
        "SELECT rank, profile, device_index, clock_offset_ns FROM neuron.EventOffsets WHERE table_name = ''"
        " ORDER BY rank, device_index, profile"
    ).rows()
    return [ProfileKey(r["rank"], r["profile"], r["device_index"], r["clock_offset_ns"]) for r in rows]


def core_lanes(engine: Engine) -> list[CoreLanes]:
    """Every core of every profile, computed once per engine."""
    known = _CACHE.get(engine)
    if known is None:
        known = [core for key in profile_keys(engine) for core in _profile(engine, key)]
        _CACHE[engine] = known
    return known


def together(cores: list[CoreLanes]) -> CoreLanes:
    """All cores of one profile as one: a lane is busy while it is on any of them."""
    first = cores[0]
    if "together" not in first.known:
        whole = CoreLanes(first.rank, first.profile, first.device_index, WHOLE, first.offset_ns)
        for name in sorted({name for core in cores for name in core.lanes}):
            whole.lanes[name] = union_of([core.lane(name) for core in cores])
        first.known["together"] = whole
    found: CoreLanes = first.known["together"]
    return found


def _profile(engine: Engine, key: ProfileKey) -> list[CoreLanes]:
    cores: dict[int, CoreLanes] = {}

    def core(number: int) -> CoreLanes:
        if number not in cores:
            cores[number] = CoreLanes(key.rank, key.profile, key.device_index, number, key.offset_ns)
        return cores[number]

    def add(lane: str, number: int, rows: _Rows) -> None:
        lanes = core(number).lanes
        found = Intervals.of(rows.start, rows.end)
        lanes[lane] = lanes[lane].union(found) if lane in lanes else found

    for lane, number, rows in _groups(engine, key, _INSTRUCTIONS):
        busy = core(number).lanes[lane] = Intervals.of(rows.start, rows.end)
        core(number).firsts[lane] = _first_ids(busy, rows)
    packets = engine.sql(
        "SELECT count(*) AS n FROM neuron.DmaPacket WHERE rank = $1 AND profile = $2", [key.rank, key.profile]
    ).rows()[0]["n"]
    for lane, number, rows in _groups(
        engine, key, _DMA.format(table="DmaPacket" if packets else "DmaPacketAggregated")
    ):
        add(DMA, number, rows)
        if lane in (STATIC, SOFTWARE, HARDWARE):
            add(lane, number, rows)
    for lane, number, rows in _groups(engine, key, _SPILLS):
        add(lane, number, rows)
    for lane, number, rows in _groups(engine, key, _SHARED):
        for each in [number] if number in cores else sorted(cores) or [0]:
            add(lane, each, rows)
    return [cores[number] for number in sorted(cores)]


END = "coalesce(end_ts, start_ts + duration_ns)"
"""SQL: end of a row of a timeline table, on the device's clock."""
_WHERE = f"rank = $1 AND profile = $2 AND start_ts IS NOT NULL AND {END} IS NOT NULL"
ENGINE_CODE = (
    "CASE lower(engine) "
    + " ".join(f"WHEN '{text}' THEN {ENGINES.index(name)}" for text, name in ENGINE_OF_NAME.items())
    + " ELSE -1 END"
)
"""SQL: place of a row's engine in ENGINES, -1 where it has another name."""
_INSTRUCTIONS = f"""
    SELECT CAST({ENGINE_CODE} AS TINYINT) AS lane, CAST(coalesce(pcore_idx, 0) AS INTEGER) AS core, start_ts, {END} AS end_ts,
           coalesce(id, {NO_ID}) AS id
    FROM neuron.Instruction WHERE {_WHERE}"""
_DMA = f"""
    SELECT CAST(CASE queue_type WHEN 'software_dynamic' THEN {LANES.index(SOFTWARE)}
             WHEN 'hardware_dynamic' THEN {LANES.index(HARDWARE)} WHEN 'unknown' THEN -1 ELSE {LANES.index(STATIC)} END
           AS TINYINT) AS lane,
           CAST(coalesce(pcore_idx, 0) AS INTEGER) AS core, start_ts, {END} AS end_ts
    FROM neuron.{{table}} WHERE {_WHERE}"""
_SPILLS = f"""
    SELECT CAST({LANES.index(SPILL)} AS TINYINT) AS lane, CAST(coalesce(pcore_idx, 0) AS INTEGER) AS core, start_ts, {END} AS end_ts
    FROM neuron.DmaPacketAggregated WHERE {_WHERE} AND {SPILL_CONDITION}"""
_SHARED = f"""
    SELECT CAST({LANES.index(COLLECTIVE)} AS TINYINT) AS lane, -1 AS core, start_ts, {END} AS end_ts
    FROM neuron.CcOp WHERE {_WHERE}
    UNION ALL
    SELECT CAST({LANES.index(THROTTLE)} AS TINYINT), CAST(coalesce(pcore_idx, -1) AS INTEGER), timestamp, timestamp + duration
    FROM neuron.Throttle WHERE rank = $1 AND profile = $2 AND timestamp IS NOT NULL"""


@dataclass(frozen=True)
class _Rows:
    """Rows of one lane of one core, in the run's time; `id` only of instructions."""

    start: npt.NDArray[np.int64]
    end: npt.NDArray[np.int64]
    id: npt.NDArray[np.int64] | None


def _groups(engine: Engine, key: ProfileKey, sql: str) -> Iterator[tuple[str, int, _Rows]]:
    """(lane, core, rows) of a query's rows; lane '' where it has no name here."""
    table = engine.sql(sql, [key.rank, key.profile]).arrow()
    if not table.num_rows:
        return
    lane = table.column("lane").to_numpy()
    core = table.column("core").to_numpy()
    ids = table.column("id").to_numpy() if "id" in table.column_names else None
    start, end = table.column("start_ts").to_numpy(), table.column("end_ts").to_numpy()
    code = core.astype(np.int32) * 64 + lane
    for value in np.unique(code):
        chosen = np.flatnonzero(code == value)
        number = int(lane[chosen[0]])
        yield (
            LANES[number] if number >= 0 else "",
            int(core[chosen[0]]),
            _Rows(
                start[chosen] + key.offset_ns,
                end[chosen] + key.offset_ns,
                None if ids is None else ids[chosen],
            ),
        )


def _first_ids(busy: Intervals, rows: _Rows) -> npt.NDArray[np.int64]:
    """For each interval, the smallest id of the rows that start with it."""
    assert rows.id is not None
    order = np.argsort(rows.start, kind="stable")
    start, ids = rows.start[order], rows.id[order]
    if not len(start):
        return ids
    begins = np.flatnonzero(np.r_[True, start[1:] > start[:-1]])
    smallest = np.minimum.reduceat(ids, begins)
    return smallest[np.searchsorted(start[begins], busy.start_ns)]


def compute(engine: Engine) -> pa.Table:
    """The computed table neuron_busy."""
    parts = []
    for core in core_lanes(engine):
        for name, busy in core.lanes.items():
            count = len(busy.start_ns)
            parts.append(
                pa.table(
                    {
                        "rank": pa.repeat(pa.scalar(core.rank, pa.int32()), count),
                        "profile": constant(core.profile, count),
                        "device": constant(f"neuron:{core.device_index}", count),
                        "core": pa.repeat(pa.scalar(core.core, pa.int32()), count),
                        "lane": constant(name, count),
                        "start_ns": busy.start_ns,
                        "duration_ns": busy.end_ns - busy.start_ns,
                    }
                )
            )
    if parts:
        return pa.concat_tables(parts).unify_dictionaries()
    names = {
        "rank": pa.int32(),
        "profile": pa.string(),
        "device": pa.string(),
        "core": pa.int32(),
        "lane": pa.string(),
    }
    return pa.table(
        {n: pa.array([], k) for n, k in {**names, "start_ns": pa.int64(), "duration_ns": pa.int64()}.items()}
    )


def constant(text: str, count: int) -> pa.Array:
    """One string `count` times, stored once."""
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, np.int8)), pa.array([text]))
