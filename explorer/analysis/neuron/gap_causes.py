"""What ended a gap of an engine, as the profile's dependencies and semaphores tell it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from explorer.analysis.engine import Engine
from explorer.analysis.neuron.gaps import Gaps
from explorer.analysis.neuron.lanes import NO_ID, SPILL_CONDITION, CoreLanes
from explorer.model.neuron_engines import ENGINE_OF_NAME
from explorer.model.neuron_flow import is_table

CAUSES = ("dma", "input", "spill", "engine", "collective", "short", "start", "end", "unknown")
METHODS = ("flow", "semaphore", "coincidence", "none")

_ALIASES = "MAP {" + ", ".join(f"'{text}': '{name}'" for text, name in ENGINE_OF_NAME.items()) + "}"


def _code(text: str) -> str:
    return str(CAUSES.index(text))


_FLOWS = f"""
WITH before AS MATERIALIZED (
    SELECT f.in_table, f.in_id, g.gap, g.start, g."end"
    FROM neuron.Flow AS f JOIN __neuron_gaps AS g ON f.out_id = g.id
    WHERE f.rank = $1 AND f.profile = $2 AND {is_table("f.out_table", "Instruction")}),
ended AS (
    SELECT f.gap, i.end_ts + $3 AS at_ns, {_code("engine")} AS cause, coalesce({_ALIASES}[lower(i.engine)], i.engine) AS blocker
    FROM before AS f JOIN neuron.Instruction AS i ON i.id = f.in_id AND {is_table("f.in_table", "Instruction")}
    WHERE i.rank = $1 AND i.profile = $2 AND i.end_ts + $3 > f.start AND i.end_ts + $3 <= f."end"
    UNION ALL
    SELECT f.gap, d.end_ts + $3,
           CASE WHEN {SPILL_CONDITION} THEN {_code("spill")} WHEN d.queue_name ILIKE 'qSyncIO%' THEN {_code("input")} ELSE {_code("dma")} END,
           d.queue_name
    FROM before AS f JOIN neuron.DmaPacketAggregated AS d ON d.id = f.in_id AND {is_table("f.in_table", "DmaPacketAggregated")}
    WHERE d.rank = $1 AND d.profile = $2 AND d.end_ts + $3 > f.start AND d.end_ts + $3 <= f."end"),
last AS (SELECT gap, max(struct_pack(at_ns := at_ns, cause := cause, blocker := blocker)) AS x FROM ended GROUP BY gap)
SELECT gap, x.cause::TINYINT AS cause, x.blocker AS blocker FROM last
"""

# Of names updated at one moment a queue's comes before an engine's.
_UPDATES = f"""
SELECT core, at_ns, arg_min(name, (NOT starts_with(name, 'q'), name)) AS name FROM (
    SELECT coalesce(pcore_idx, 0)::INTEGER AS core, timestamp + $3 AS at_ns, unnest([id, update_source]) AS name
    FROM neuron.SemaphoreUpdate WHERE rank = $1 AND profile = $2 AND timestamp IS NOT NULL)
WHERE starts_with(name, 'q') OR {_ALIASES}[lower(name)] IS NOT NULL
GROUP BY core, at_ns ORDER BY core, at_ns
"""


@dataclass(frozen=True)
class Told:
    """What was found: for the gaps at these places a code of CAUSES and who was waited for."""

    gap: npt.NDArray[np.int64]
    cause: npt.NDArray[np.int8]
    blocker: pa.Array


def from_dependencies(engine: Engine, core: CoreLanes, gaps: Gaps, asked: npt.NDArray[np.int64]) -> Told:
    """The predecessor of the instruction behind the gap that finished last, if within the gap.

    Args:
        core: any core of the profile.
        asked: places of the gaps that ask for a cause.
    """
    ids = gaps.first_id[asked]
    table = pa.table(
        {
            "gap": asked,
            "start": gaps.start[asked],
            "end": gaps.end[asked],
            "id": pa.array(ids, mask=ids == NO_ID),
        }
    )
    engine.connection.register("__neuron_gaps", table)
    try:
        found = engine.sql(_FLOWS, [core.rank, core.profile, core.offset_ns]).arrow()
    finally:
        engine.connection.unregister("__neuron_gaps")
    return Told(
        found.column("gap").to_numpy(),
        found.column("cause").to_numpy(),
        found.column("blocker").combine_chunks(),
    )


def from_semaphores(engine: Engine, core: CoreLanes, gaps: Gaps, asked: npt.NDArray[np.int64]) -> Told:
    """The last update of a semaphore that names an engine or a queue, if within the gap."""
    found = engine.sql(_UPDATES, [core.rank, core.profile, core.offset_ns]).arrow()
    cores, times = found.column("core").to_numpy(), found.column("at_ns").to_numpy()
    names = found.column("name").to_pylist()
    hits, updates = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for number in np.unique(cores):
        first, last = np.searchsorted(cores, [number, number + 1])
        mine = asked[gaps.core[asked] == number]
        place = np.searchsorted(times[first:last], gaps.end[mine], side="right") - 1 + first
        within = (place >= first) & (times[place] > gaps.start[mine])
        hits.append(mine[within])
        updates.append(place[within])
    chosen = np.concatenate(updates)
    causes = np.array([_cause_of(name) for name in names], np.int8)
    blockers = pa.array([ENGINE_OF_NAME.get(name.lower(), name) for name in names], pa.string())
    return Told(np.concatenate(hits), causes[chosen], blockers.take(pa.array(chosen)))


def _cause_of(name: str) -> int:
    """What a semaphore's name says: spill queues, input queues, other queues, else an engine."""
    if "spill" in name.lower():
        return CAUSES.index("spill")
    if name.lower().startswith("qsyncio"):
        return CAUSES.index("input")
    return CAUSES.index("dma" if name.startswith("q") else "engine")
