"""What linking needs of every row, gathered chunk by chunk: numbers and positions in lists of distinct words."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from explorer.collectors.kineto.distinct import distinct

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
NONE = np.iinfo(np.int64).min
"""Marks an absent number."""
UNREAD = NONE + 1
"""Marks a duration that is no number."""
LONGEST = np.iinfo(np.int64).max
"""Stands for durations that are longer."""
_JOINED_ROWS = 1 << 19
_LARGE_BYTES = 1 << 20
"""Parts are joined after so many rows, those that are smaller than this."""


@dataclass
class Sparse:
    """Numbers that few rows have: `row` ascending, `value` beside it."""

    row: Ints
    value: Ints

    def at(self, rows: Ints) -> Ints:
        """The numbers of the given rows, NONE where absent."""
        if not len(self.row):
            return np.full(len(rows), NONE)
        place = np.minimum(np.searchsorted(self.row, rows), len(self.row) - 1)
        return np.where(self.row[place] == rows, self.value[place], NONE)

    def within(self, rows: Ints) -> Sparse:
        """The same numbers by position in `rows` (ascending), for those rows that have one."""
        if not len(rows) or not len(self.row):
            return Sparse(np.empty(0, np.int64), np.empty(0, np.int64))
        place = np.minimum(np.searchsorted(rows, self.row), len(rows) - 1)
        known = rows[place] == self.row
        return Sparse(place[known], self.value[known])


class Words:
    """Distinct texts with their positions; None has one of its own."""

    def __init__(self) -> None:
        self.values: list[str | None] = []
        self._position: dict[str | None, int] = {}

    def add(self, values: list[str | None]) -> npt.NDArray[np.int32]:
        """Positions of the values, new ones appended."""
        result = np.empty(len(values), np.int32)
        for index, value in enumerate(values):
            found = self._position.get(value)
            if found is None:
                found = self._position[value] = len(self.values)
                self.values.append(value)
            result[index] = found
        return result

    def codes(self, column: pa.DictionaryArray) -> npt.NDArray[np.int32]:
        """A dictionary column as positions."""
        table = self.add([*column.dictionary.to_pylist(), None])
        return table[np.asarray(pc.fill_null(column.indices, len(table) - 1))]


SPARSE = (
    "ident",
    "correlation_id",
    "external_id",
    "stream",
    "device",
    "sequence_number",
    "forward_thread",
)


@dataclass
class LightRows:
    """All rows of a trace without their texts. Arrays are by row number."""

    phase: npt.NDArray[np.int8]
    name: npt.NDArray[np.int32]
    category: npt.NDArray[np.int32]
    track: npt.NDArray[np.int32]
    """Position in `tracks`"""
    time: Ints
    length: Ints
    odd: Ints
    """Rows that are no objects"""
    sized: Ints
    """Rows that have a size in bytes"""
    numbers: dict[str, Sparse]
    call_stack: Sparse
    phases: list[str | None]
    names: list[str | None]
    categories: list[str | None]
    tracks: list[tuple[str | None, str | None]]
    call_stacks: list[str | None]
    labels: list[tuple[int, str]]
    """Metadata rows with a name or labels: row, text"""

    def __len__(self) -> int:
        return len(self.track)

    def forget(self) -> None:
        """Drop what only `collect` needs; tracks and call stacks stay."""
        self.phase, self.name, self.category = (
            np.empty(0, np.int8),
            np.empty(0, np.int32),
            np.empty(0, np.int32),
        )
        self.time = self.length = np.empty(0, np.int64)
        self.numbers.clear()


def _join_small(parts: list[npt.NDArray[np.generic]]) -> None:
    """Make one of the last parts, those that are small: only large arrays can lie in files."""
    first = len(parts)
    while first and parts[first - 1].nbytes < _LARGE_BYTES:
        first -= 1
    if first < len(parts) - 1:
        parts[first:] = [np.concatenate(parts[first:])]


@dataclass
class LightGatherer:
    """Adds chunks one by one; `finish` gives the whole."""

    rows: int = 0
    _parts: dict[str, list[npt.NDArray[np.generic]]] = field(default_factory=dict)
    _words: dict[str, Words] = field(
        default_factory=lambda: {n: Words() for n in ("ph", "cat", "name", "call_stack")}
    )
    _tracks: dict[tuple[str | None, str | None], int] = field(default_factory=dict)
    _labels: list[tuple[int, str]] = field(default_factory=list)
    _joined_at: int = 0

    def add(self, part: Distilled) -> None:
        """Add the next chunk."""
        base, count = self.rows, part.count
        for name, kind in (("ph", np.int8), ("cat", np.int32), ("name", np.int32)):
            table = self._words[name].add(part.words[name])
            self._keep(name, table[part.codes[name]].astype(kind, copy=False))
        known = self._tracks
        table = np.array([known.setdefault(key, len(known)) for key in part.tracks] or [0], np.int32)
        self._keep("track", table[part.codes["track"]])
        self._keep("time", part.time)
        self._keep("length", part.length)
        for name, (row, value) in part.sparse.items():
            self._keep(f"{name}.row", (row + base).astype(np.int32))
            self._keep(f"{name}.value", value)
        stacks = self._words["call_stack"].add(part.words["call_stack"])
        self._keep("stack.row", part.stack_rows + base)
        self._keep(
            "stack.value",
            stacks[part.stack_codes].astype(np.int64) if len(part.stack_codes) else part.stack_rows,
        )
        self._keep("odd", part.odd + base)
        self._keep("sized", part.sized + base)
        self._labels += [(row + base, text) for row, text in part.labels]
        self.rows += count
        if self.rows >= self._joined_at + _JOINED_ROWS:
            self._joined_at = self.rows
            for parts in self._parts.values():
                _join_small(parts)

    def _keep(self, name: str, values: npt.NDArray[np.generic]) -> None:
        self._parts.setdefault(name, []).append(values)

    def _joined(self, name: str, kind: type[np.generic]) -> npt.NDArray[np.generic]:
        parts = self._parts.pop(name, [])
        return np.concatenate(parts) if parts else np.empty(0, kind)

    def finish(self) -> LightRows:
        """The whole trace. The gatherer is empty afterwards."""

        def sparse(name: str) -> Sparse:
            return Sparse(self._joined(f"{name}.row", np.int64), self._joined(f"{name}.value", np.int64))  # type: ignore[arg-type]

        return LightRows(
            phase=self._joined("ph", np.int8),  # type: ignore[arg-type]
            name=self._joined("name", np.int32),  # type: ignore[arg-type]
            category=self._joined("cat", np.int32),  # type: ignore[arg-type]
            track=self._joined("track", np.int32),  # type: ignore[arg-type]
            time=self._joined("time", np.int64),  # type: ignore[arg-type]
            length=self._joined("length", np.int64),  # type: ignore[arg-type]
            odd=self._joined("odd", np.int64),  # type: ignore[arg-type]
            sized=self._joined("sized", np.int64),  # type: ignore[arg-type]
            numbers={name: sparse(name) for name in SPARSE},
            call_stack=sparse("stack"),
            phases=self._words["ph"].values,
            names=self._words["name"].values,
            categories=self._words["cat"].values,
            tracks=list(self._tracks),
            call_stacks=self._words["call_stack"].values,
            labels=self._labels,
        )


@dataclass
class Distilled:
    """The light part of one chunk, rows numbered from 0: small enough to send between processes."""

    count: int
    words: dict[str, list[str | None]]
    codes: dict[str, npt.NDArray[np.int32]]
    tracks: list[tuple[str | None, str | None]]
    time: Ints
    length: Ints
    sparse: dict[str, tuple[Ints, Ints]]
    stack_rows: Ints
    stack_codes: npt.NDArray[np.int32]
    odd: Ints
    sized: Ints
    labels: list[tuple[int, str]]
    repeats: tuple[int, int] = (0, 0)
    """Rows with repeated names, and the first byte of the first in the chunk"""


def distil(rows: pa.Table) -> Distilled:
    """The light part of a chunk made by `read_rows`."""
    if rows.num_rows == 0:
        empty, codes = np.empty(0, np.int64), np.empty(0, np.int32)
        return Distilled(
            0,
            {n: [] for n in ("ph", "cat", "name", "call_stack")},
            dict.fromkeys(("ph", "cat", "name", "track"), codes),
            [],
            empty,
            empty,
            dict.fromkeys(SPARSE, (empty, empty)),
            empty,
            codes,
            empty,
            empty,
            [],
        )
    columns: dict[str, pa.Array] = {name: rows.column(name).chunk(0) for name in rows.column_names}
    words: dict[str, list[str | None]] = {}
    codes_: dict[str, npt.NDArray[np.int32]] = {}
    for name in ("ph", "cat", "name", "pid", "tid", "call_stack"):
        column = columns[name]
        words[name] = [*column.dictionary.to_pylist(), None]
        codes_[name] = np.asarray(pc.fill_null(column.indices, len(words[name]) - 1))
    width = len(words["tid"])
    key = codes_["pid"].astype(np.int64) * width + codes_["tid"]
    # What the numbers stand for depends on who read the rows; where they first appear does not.
    found, codes_["track"] = distinct(key)
    tracks = [(words["pid"][k // width], words["tid"][k % width]) for k in found.tolist()]
    sparse = {}
    for name in SPARSE:
        column = columns[name]
        where = _valid(column)
        sparse[name] = (where, np.asarray(column.drop_null(), dtype=np.int64))
    labels = columns["label"]
    labelled = _valid(labels)
    stacked = np.flatnonzero(codes_["call_stack"] != len(words["call_stack"]) - 1)
    return Distilled(
        count=rows.num_rows,
        words={n: words[n] for n in ("ph", "cat", "name", "call_stack")},
        codes={n: codes_[n] for n in ("ph", "cat", "name", "track")},
        tracks=tracks,
        time=np.asarray(pc.fill_null(columns["ts"], NONE)),
        length=np.asarray(pc.fill_null(columns["dur"], NONE)),
        sparse=sparse,
        stack_rows=stacked,
        stack_codes=codes_["call_stack"][stacked],
        odd=_valid(columns["odd"]),
        sized=_valid(columns["size_bytes"]),
        labels=list(zip(labelled.tolist(), labels.drop_null().to_pylist())),
    )


def _valid(column: pa.Array) -> Ints:
    """The rows in which a column is not null."""
    if not column.null_count:
        return np.arange(len(column))
    if column.null_count == len(column):
        return np.empty(0, np.int64)
    bits = np.unpackbits(np.frombuffer(column.buffers()[0], np.uint8), bitorder="little")
    return np.flatnonzero(bits[column.offset : column.offset + len(column)])
