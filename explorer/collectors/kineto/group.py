"""Writing a stretch of a trace: the rows of a few chunks with what linking found out about them, as one part per table."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from explorer.collectors.kineto.collectives import collective_rows
from explorer.collectors.kineto.columns import Column, picked, stretch
from explorer.collectors.kineto.counters import counter_rows
from explorer.collectors.kineto.light import NONE
from explorer.collectors.kineto.memory import MEMORY_COLUMNS, memory_rows
from explorer.collectors.kineto.spool import load
from explorer.model.tables import TABLES
from explorer.store.location import Location
from explorer.store.manifest import Part
from explorer.store.part import write_part

Ints = npt.NDArray[np.int64]

KINDS = {
    "M": "metadata",
    "s": "flow_start",
    "t": "flow_step",
    "f": "flow_end",
    "P": "sample",
    "N": "object",
    "O": "object",
    "D": "object",
}


EVENT_COLUMNS = (
    "name",
    "correlation_id",
    "flops",
    "size_bytes",
    "shapes",
    "dtypes",
    "collective",
    "attributes",
)
COUNTER_COLUMNS = ("name", "args", "ts")
SOURCE_COLUMNS = ("ph", "name", "ts", "id", "cat", "attributes")
"""What the tables take from the rows of a chunk; the other columns are not read again."""


@dataclass
class Group:
    """One stretch of rows, `first` being the number of its first row in the trace. Row numbers here count from `first`.

    `columns` are those of all events of the trace, of which the group's are `low` to `high`: `row` (number in the trace),
    times, numbers, positions of other events (-1: none) and, of what has words or ids, positions in `words` or `ids`. `track`
    is by row of the trace.
    """

    chunks: list[pa.Table | str]
    first: int
    count: int
    base_ns: int
    track: Column
    low: int
    high: int
    columns: dict[str, Column]
    words: dict[str, list[str | None]]
    ids: dict[str, Ints]
    """Position 0 stands for none"""
    extra: dict[int, str]
    """Further members of attributes, by position of the event in the group"""
    memory: dict[str, Ints]
    counters: Ints
    others: Ints
    refused: list[tuple[int, str]]
    ends: dict[int, int] = field(default_factory=dict)
    """Row of the end, by position of the event in the group, where both lie in this group"""

    def column(self, name: str) -> npt.NDArray[Any]:
        """A column at the group's events."""
        return stretch(self.columns[name], self.low, self.high)

    def needs(self) -> list[str] | None:
        """The columns of the chunks that the group's tables take; None for all."""
        if self.refused:
            return None
        wanted = set(EVENT_COLUMNS) if self.high > self.low else set()
        wanted |= set(MEMORY_COLUMNS) if len(self.memory["row"]) else set()
        wanted |= set(COUNTER_COLUMNS) if len(self.counters) else set()
        wanted |= set(SOURCE_COLUMNS) if len(self.others) else set()
        return sorted(wanted)


@dataclass
class Written:
    """Parts written and rows that could not be used, as (text, reason)."""

    parts: list[Part] = field(default_factory=list)
    refused: list[tuple[str, str]] = field(default_factory=list)
    counters: int = 0


def write_group(group: Group, root: Location | str, rank: int, paths: dict[str, str]) -> Written:
    """Write the group's parts to the given paths (relative to the run)."""
    location = Location.of(root) if isinstance(root, str) else root
    needs = group.needs()
    rows = pa.concat_tables([load(chunk, needs) for chunk in group.chunks])
    rows = rows.unify_dictionaries().combine_chunks()
    result = Written()

    def write(table: str, data: Any, *, presorted: bool = False) -> None:
        part = write_part(location, paths[table], TABLES[table], data, rank, presorted=presorted)
        if part.rows:
            result.parts.append(part)

    if group.high > group.low:
        collectives = collective_rows(
            rows,
            group.column("row") - group.first,
            group.column("on_device"),
            _in_category(group, "collective"),
            group.first,
        )
        write("events", _events(rows, group), presorted=True)
        if collectives:
            write("collectives", collectives)
    if len(group.memory["row"]):
        write("memory_events", memory_rows(rows, group.memory, group.first, group.base_ns))
    if len(group.counters):
        values = counter_rows(rows, group.counters, _track(group), group.base_ns)
        result.counters = len(values["value"])
        if result.counters:
            write("counters", values)
    if len(group.others):
        write("source_rows", _source_rows(rows, group))
    result.refused = [(as_json(rows, row), reason) for row, reason in group.refused]
    return result


def _track(group: Group) -> npt.NDArray[np.int32]:
    """The track of each row."""
    return stretch(group.track, group.first, group.first + group.count)


def _in_category(group: Group, category: str) -> npt.NDArray[np.bool_]:
    words = group.words["category"]
    return np.isin(group.column("category"), [place for place, word in enumerate(words) if word == category])


def nullable(
    values: npt.NDArray[Any], absent: npt.NDArray[np.bool_], kind: pa.DataType | None = None
) -> pa.Array:
    """Integers with nulls."""
    if absent.all():
        return pa.nulls(len(values), kind or pa.int64())
    return pa.array(values, kind or pa.int64(), mask=absent)


def chosen(which: npt.NDArray[Any], words: list[str | None]) -> pa.DictionaryArray:
    """Positions in a list of words as a dictionary column; None is null."""
    absent = np.array([word is None for word in words], bool)
    codes = pa.array(which.astype(np.int32), mask=absent[which] if len(words) else None)
    return pa.DictionaryArray.from_arrays(codes, pa.array([word or "" for word in words], pa.string()))


def taken(rows: pa.Table, name: str, which: Ints) -> pa.Array:
    """A column at some rows, as one array."""
    column = rows.column(name)
    if column.null_count == len(column):
        return pa.nulls(len(which), column.type)
    column = column.take(pa.array(which))
    combined = column.combine_chunks()
    if isinstance(combined, pa.ChunkedArray):
        return combined.chunk(0) if combined.num_chunks else pa.array([], combined.type)
    return combined


def filled(column: pa.Array) -> pa.Array:
    """A text column with "" for null."""
    if not column.null_count:
        return column
    if pa.types.is_dictionary(column.type):
        column = column.cast(pa.string())
    return pc.fill_null(column, "")


def _events(rows: pa.Table, group: Group) -> dict[str, Any]:
    """The columns of `events` in the table's order."""
    start = group.column("start")
    # Rows ascend, so a stable order by start is the one by start and row.
    order = None if (start[1:] >= start[:-1]).all() else np.argsort(start, kind="stable")

    def ordered(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return values if order is None else values[order]

    def of(name: str) -> npt.NDArray[Any]:
        return ordered(group.column(name))

    which = of("row") - group.first
    step = of("step")
    data: dict[str, Any] = {
        "event_id": which + group.first,
        "track_id": _track(group)[which],
        "start_ns": ordered(start),
        "duration_ns": of("duration"),
        "self_ns": of("own"),
        "step": nullable(step, step < 0, pa.int32()),
        "name": filled(taken(rows, "name", which)),
        "attributes": _attributes(rows, group, which, order),
    }
    for name in ("correlation_id", "flops", "size_bytes", "shapes", "dtypes"):
        data[name] = taken(rows, name, which)
    for name in ("parent", "launch", "op", "forward"):
        positions = of(name)
        absent = positions < 0
        if not absent.all():
            data[f"{name}_id"] = nullable(picked(group.columns["row"], np.maximum(positions, 0)), absent)
    for name, ids in group.ids.items():
        places = of(name)
        data[f"{name}_id"] = nullable(ids[places], places == 0)
    for name, words in group.words.items():
        data[name] = chosen(of(name), words)
    return data


def _attributes(rows: pa.Table, group: Group, which: Ints, order: npt.NDArray[np.intp] | None) -> pa.Array:
    attributes = taken(rows, "attributes", which)
    if not group.extra and not group.ends:
        return attributes
    values = attributes.to_pylist()
    at = np.arange(len(which)) if order is None else np.argsort(order)
    for place, text in group.extra.items():
        values[at[place]] = _with(values[at[place]], text)
    for place, row in group.ends.items():
        end = rows.column("attributes")[row].as_py()
        if end:
            values[at[place]] = _with(values[at[place]], f'"end":{end}')
    return pa.array(values, pa.string())


def _with(text: str | None, member: str) -> str:
    old = text or "{}"
    return old[:-1] + ("," if len(old) > 2 else "") + member + "}"


def _source_rows(rows: pa.Table, group: Group) -> dict[str, Any]:
    which = group.others
    time = np.asarray(pc.fill_null(taken(rows, "ts", which), NONE))
    absent = (time == NONE) | (np.abs(time) >= 1 << 62)
    phases = taken(rows, "ph", which)
    kinds = [KINDS.get(phase or "", phase or "") for phase in phases.dictionary.to_pylist()]
    return {
        "kind": pa.array(kinds, pa.string()).take(phases.indices).dictionary_encode(),
        "name": filled(taken(rows, "name", which)),
        "track_id": _track(group)[which],
        "timestamp_ns": nullable(np.where(absent, 0, time) + group.base_ns, absent),
        "key": taken(rows, "id", which),
        "category": taken(rows, "cat", which),
        "attributes": taken(rows, "attributes", which),
    }


def as_json(rows: pa.Table, row: int) -> str:
    """A row that cannot be used, with its fields as the source had them; times in microseconds."""
    data = rows.slice(row, 1).to_pylist()[0]
    if data["odd"] is not None:
        return str(data["odd"])
    result: dict[str, Any] = {k: data[k] for k in ("ph", "cat", "name", "pid", "tid") if data[k] is not None}
    for name in ("ts", "dur"):
        if data[name] is not None:
            sign, whole = ("-" if data[name] < 0 else ""), abs(data[name])
            result[name] = f"{sign}{whole // 1000}.{whole % 1000:03d}"
    for name in ("correlation_id", "size_bytes", "shapes", "dtypes"):
        if data[name] is not None:
            result[name] = data[name]
    if data["attributes"]:
        result |= json.loads(data["attributes"], parse_float=_finite)
    return json.dumps(result, ensure_ascii=False)


def _finite(number: str) -> float | str:
    """A number of attributes; one beyond floats as it was written."""
    value = float(number)
    return value if math.isfinite(value) else number
