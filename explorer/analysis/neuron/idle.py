"""Idle time of the compute engines, each gap with what ended it: the wait of the first instruction behind it.

Three ways to know, in this order, and each gap says which:
flow         a dependency of the profile (table Flow): the predecessor of that instruction that finished last, within the gap
semaphore    an update of a semaphore that names an engine or a queue, the last one within the gap
coincidence  no dependency is recorded: the work of another lane that ended last within the gap
Gaps shorter than SHORT_NS are start-up of the next instruction and are not explained.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from explorer.analysis.engine import Engine
from explorer.analysis.neuron.gap_causes import CAUSES, METHODS, from_dependencies, from_semaphores
from explorer.analysis.neuron.gaps import OTHERS, gaps_of
from explorer.analysis.neuron.lanes import NO_ID, CoreLanes, core_lanes
from explorer.analysis.neuron.overlap import profile_window
from explorer.model.neuron_engines import ENGINES

_WORD = pa.dictionary(pa.int8(), pa.string())
_BLOCKER = pa.dictionary(pa.int32(), pa.string())
_SCHEMA = pa.schema(
    [
        pa.field("rank", pa.int32()),
        pa.field("profile", _WORD),
        pa.field("device", _WORD),
        pa.field("core", pa.int32()),
        pa.field("engine", _WORD),
        pa.field("start_ns", pa.int64()),
        pa.field("duration_ns", pa.int64()),
        pa.field("cause", _WORD),
        pa.field("blocker", _BLOCKER),
        pa.field("method", _WORD),
        pa.field("event_id", pa.int64()),
    ]
)


def compute(engine: Engine) -> pa.Table:
    """The computed table neuron_idle."""
    profiles: dict[tuple[int, str], list[CoreLanes]] = {}
    for core in core_lanes(engine):
        profiles.setdefault((core.rank, core.profile), []).append(core)
    parts = [_profile(engine, cores) for cores in profiles.values() if any(core.lanes for core in cores)]
    return pa.concat_tables([_SCHEMA.empty_table(), *parts]).unify_dictionaries()


def _profile(engine: Engine, cores: list[CoreLanes]) -> pa.Table:
    first = cores[0]
    gaps = gaps_of(cores, profile_window(cores))
    count = len(gaps.start)
    # What coincides, where nothing better is known.
    by_lane = np.array(
        [CAUSES.index("engine")] * len(ENGINES) + [CAUSES.index(name) for name in OTHERS[len(ENGINES) :]],
        np.int8,
    )
    cause = np.where(gaps.lane >= 0, by_lane[gaps.lane], CAUSES.index("unknown")).astype(np.int8)
    cause[(gaps.lane < 0) & gaps.is_first] = CAUSES.index("start")
    method = np.where(gaps.lane >= 0, METHODS.index("coincidence"), METHODS.index("none")).astype(np.int8)
    blocker = gaps.lane.astype(np.int32)
    explained = gaps.explained
    names = list(OTHERS)
    left = np.flatnonzero(explained)
    for known_by, ask in (("flow", from_dependencies), ("semaphore", from_semaphores)):
        told = ask(engine, first, gaps, left)
        rows = told.gap
        words = told.blocker.dictionary_encode()
        cause[rows], method[rows] = told.cause, METHODS.index(known_by)
        blocker[rows] = words.indices.fill_null(-1 - len(names)).to_numpy(zero_copy_only=False) + len(names)
        names += words.dictionary.to_pylist()
        left = left[~np.isin(left, rows)] if len(rows) else left
    for plain, text in ((~explained, "short"), (gaps.is_last, "end")):
        cause[plain] = CAUSES.index(text)
        method[plain] = METHODS.index("none")
        blocker[plain] = -1
    shift = engine.sql(
        "SELECT any_value(id_offset) AS x FROM neuron.EventOffsets WHERE rank = $1 AND profile = $2 AND table_name = 'Instruction'",
        [first.rank, first.profile],
    ).rows()[0]["x"]
    unknown = ~explained | (gaps.first_id == NO_ID) if shift is not None else np.ones(count, np.bool_)
    columns = {
        "rank": pa.array(np.full(count, first.rank, np.int32)),
        "profile": _words(np.zeros(count, np.int8), [first.profile]),
        "device": _words(np.zeros(count, np.int8), [f"neuron:{first.device_index}"]),
        "core": pa.array(gaps.core.astype(np.int32)),
        "engine": _words(gaps.engine.astype(np.int8), list(ENGINES)),
        "start_ns": pa.array(gaps.start),
        "duration_ns": pa.array(gaps.end - gaps.start),
        "cause": _words(cause, list(CAUSES)),
        "blocker": _unique_words(blocker, names),
        "method": _words(method, list(METHODS)),
        "event_id": pa.array(np.where(unknown, 0, gaps.first_id) + (shift or 0), mask=unknown),
    }
    return pa.table(columns, schema=_SCHEMA)


def _words(codes: npt.NDArray[np.int8], texts: list[str]) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(texts, pa.string()))


def _unique_words(codes: npt.NDArray[np.int32], texts: list[str]) -> pa.Array:
    """Words by code (-1: null) where `texts` may name one twice."""
    unique = list(dict.fromkeys(texts))
    place = np.array([unique.index(text) for text in texts], np.int32)
    return pa.DictionaryArray.from_arrays(
        pa.array(place[codes], mask=codes < 0), pa.array(unique, pa.string())
    )
