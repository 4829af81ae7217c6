"""The events of one rank on their way from an importer to the run: rows as they come, links once all are there.

Rows are kept as Arrow batches, on disk beyond a memory limit; only the skeleton (track, time, category, line, link key)
stays in memory, about 50 bytes an event. `finish` finds parents, self time, responsible ops, launches, steps and lines.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from explorer.collectors.claimed_folder import ClaimedFolder, scratch_folder
from explorer.collectors.kineto.phases import PHASES, phase_of_name, phases
from explorer.collectors.nesting import Int64s, nearest, nest
from explorer.collectors.track_table import TrackTable
from explorer.model.tables import EVENTS
from explorer.model.vocabulary import CATEGORIES, DEVICE_WORK
from explorer.store.writer import RunWriter

BATCH_ROWS = 32_768
MAX_NAMES = 100_000
"""Names whose phase is remembered"""
_CATEGORY_CODES = {name: code for code, name in enumerate(CATEGORIES)}
_COMPUTED = {"rank", "event_id", "parent_id", "self_ns", "step", "launch_id", "op_id", "forward_id"}
_COMPUTED |= {"site_id", "stack_id", "attribution", "precision", "phase"}
_RESPONSIBLE = ("op", "collective", "data")
_STORED = tuple(column.name for column in EVENTS.columns if column.name not in _COMPUTED)
_DEFAULTS: dict[str, Any] = {"category": "other", "name": ""}
_LINE = ("site_id", "stack_id", "attribution", "precision")


class Words:
    """A small set of strings as numbers; 0 is none."""

    def __init__(self) -> None:
        self.texts: list[str | None] = [None]
        self._codes: dict[str | None, int] = {None: 0}

    def code(self, text: str | None) -> int:
        code = self._codes.get(text)
        if code is None:
            code = self._codes[text] = len(self.texts)
            self.texts.append(text)
        return code

    def array(self, codes: np.ndarray[Any, Any]) -> pa.Array:
        return pa.DictionaryArray.from_arrays(
            pa.array(codes, pa.int32(), mask=codes == 0), pa.array([text or "" for text in self.texts])
        )


class EventTable:
    """Collects and links the events of one rank.

    Args:
        writer: the rank's writer.
        tracks: the tracks that events refer to.
        memory_bytes: rows held before they go to a temporary file (in the system's temporary folder).
        first_id: number of the first event.
    """

    def __init__(
        self, writer: RunWriter, tracks: TrackTable, *, memory_bytes: int = 256 << 20, first_id: int = 0
    ) -> None:
        self._writer = writer
        self._tracks = tracks
        self._limit = memory_bytes
        self._first = first_id
        self._next = first_id
        self._rows: list[dict[str, Any]] = []
        self._batches: list[pa.RecordBatch | str] = []
        self._held = 0
        self._folder: ClaimedFolder | None = None
        self._skeleton: dict[str, list[np.ndarray[Any, Any]]] = {}
        self._words = Words()
        self._phases: dict[tuple[str, str], int] = {}
        self.forward: dict[int, int] = {}
        """Backward op to forward op, by event number; may be filled until `finish`"""
        self.device_work = self.unlinked_work = self.with_line = 0
        """Device events that keep a device busy, those without a launch, and all events with a line, after `finish`"""
        self.responsible: dict[int, int] = {}
        """Host call to the op it works for, where that is known otherwise than by nesting (another thread)"""
        schema = EVENTS.arrow_schema()
        self._fields = {name: schema.field(name).type for name in _STORED}
        self._columns = {*_STORED, *_LINE, "link"}

    def __len__(self) -> int:
        return self._next - self._first

    @property
    def next_id(self) -> int:
        """Number the next event will get."""
        return self._next

    def reserve(self) -> int:
        """Take a number for a row of another table (memory events share the numbering)."""
        return self.add(track_id=-1, start_ns=0, duration_ns=0)

    def add(self, **row: Any) -> int:
        """Add one event; see `extend`. Returns its number."""
        if not row.keys() <= self._columns:
            raise TypeError(f"events have no column {', '.join(row.keys() - self._columns)}")
        self._rows.append(row)
        number = self._next
        self._next += 1
        if len(self._rows) >= BATCH_ROWS:
            self._flush()
        return number

    def extend(self, columns: Mapping[str, Sequence[Any]]) -> range:
        """Add many events, one sequence a column of `events` (the computed ones left out). Returns their numbers.

        `link` is a number that a host call and the device work it enqueued have in common (0 or None: none); it is
        not stored. `site_id`, `stack_id`, `attribution` and `precision` are passed on to events inside and to device
        work enqueued by it.
        """
        self._flush()
        if unknown := set(columns) - self._columns:
            raise TypeError(f"events have no column {', '.join(sorted(unknown))}")
        count = len(next(iter(columns.values())))
        numbers = range(self._next, self._next + count)
        self._next += count
        self._take(dict(columns), count)
        return numbers

    def _flush(self) -> None:
        rows = self._rows
        if rows:
            self._rows = []
            present = set().union(*rows)
            self._take({name: [row.get(name) for row in rows] for name in present}, len(rows))

    def _take(self, columns: dict[str, Sequence[Any]], count: int) -> None:
        """Keep a batch: the skeleton in memory, the other columns as Arrow."""
        for name, default in _DEFAULTS.items():
            values = columns.get(name)
            columns[name] = (
                [default] * count if values is None else [default if v is None else v for v in values]
            )
        skeleton: dict[str, np.ndarray[Any, Any]] = {
            "track": np.array(columns["track_id"], np.int32),
            "start": np.array(columns["start_ns"], np.int64),
            "duration": np.array(columns["duration_ns"], np.int64),
            "category": np.array([_CATEGORY_CODES[name] for name in columns["category"]], np.int8),
        }
        pairs = zip(columns["name"], columns["category"])
        skeleton["phase"] = np.array([self._phase(name, category) for name, category in pairs], np.int8)
        for bone, name in (("link", "link"), ("site", "site_id"), ("stack", "stack_id")):
            skeleton[bone] = np.array([value or 0 for value in columns.get(name) or (0,) * count], np.int64)
        for bone in ("attribution", "precision"):
            texts = columns.get(bone) or (None,) * count
            skeleton[bone] = np.array([self._words.code(text) for text in texts], np.int8)
        for bone, part in skeleton.items():
            self._skeleton.setdefault(bone, []).append(part)
        arrays: list[pa.Array] = []
        names: list[str] = []
        for name, field_type in self._fields.items():
            if name not in columns:
                continue
            array = pa.array(columns[name], field_type)
            if array.null_count == count:
                continue
            if name in ("category", "name", "phase", "shapes", "dtypes"):
                array = array.dictionary_encode()
            arrays.append(array)
            names.append(name)
        first = self._next - count
        arrays.append(pa.array(np.arange(first, self._next, dtype=np.int64)))
        batch = pa.RecordBatch.from_arrays(arrays, [*names, "event_id"])
        if not (on_track := skeleton["track"] >= 0).all():
            batch = batch.filter(pa.array(on_track))
        if batch.num_rows:
            self._store(batch)

    def _phase(self, name: str, category: str) -> int:
        """Number of the phase that an event opens for what it encloses; 0 for none."""
        key = (name, category)
        known = self._phases.get(key)
        if known is None:
            if len(self._phases) > MAX_NAMES:
                self._phases.clear()
            known = self._phases[key] = phase_of_name(name, category)
        return known

    def _store(self, batch: pa.RecordBatch) -> None:
        self._batches.append(batch)
        self._held += batch.nbytes
        if self._held <= self._limit:
            return
        if self._folder is None:
            self._folder = scratch_folder()
        for place, held in enumerate(self._batches):
            if isinstance(held, str):
                continue
            path = os.path.join(self._folder.path, f"{place}.arrow")
            with pa.OSFile(path, "wb") as file, pa.ipc.new_file(file, held.schema) as sink:
                sink.write_batch(held)
            self._batches[place] = path
        self._held = 0

    def _load(self, place: int) -> pa.Table:
        batch = self._batches[place]
        if isinstance(batch, str):
            with pa.OSFile(batch, "rb") as file:
                return pa.ipc.open_file(file).read_all()
        return pa.Table.from_batches([batch])

    def finish(self, steps: Iterable[tuple[int, int, int]] = ()) -> int:
        """Link and write all events and the launch edges; returns the number of events.

        Args:
            steps: (step, start_ns, end_ns) of every step, not overlapping.
        """
        self._flush()
        if not self._skeleton:
            return 0
        bones = {name: np.concatenate(parts) for name, parts in self._skeleton.items()}
        self._skeleton = {}
        parent, own = nest(bones["track"].astype(np.int64), bones["start"], bones["duration"])
        kinds = np.array([row.kind == "thread" for row in self._tracks.rows] or [True])
        on_host = (bones["track"] >= 0) & kinds[np.maximum(bones["track"], 0)]
        is_op = np.isin(bones["category"], [_CATEGORY_CODES[name] for name in _RESPONSIBLE]) & on_host
        working = nearest(is_op, parent)
        op = np.where(parent >= 0, working[np.maximum(parent, 0)], -1)
        carrier, by_forward = self._carriers(bones["site"], parent)
        self._set_responsible(op, working, carrier, by_forward, bones["site"])
        launch = _launches(bones["link"], bones["start"], on_host)
        linked = launch >= 0
        # A call may itself be the op that enqueues.
        op[linked] = np.where(is_op[launch[linked]], launch[linked], op[launch[linked]])
        inherits = linked & (bones["site"] == 0)
        carrier[inherits] = carrier[launch[inherits]]
        by_forward[inherits] = by_forward[launch[inherits]]
        step = _steps(bones["start"], steps)
        step[linked] = step[launch[linked]]
        work = np.isin(bones["category"], [_CATEGORY_CODES[name] for name in DEVICE_WORK]) & ~on_host
        self.device_work = int(work.sum())
        self.unlinked_work = int((work & ~linked).sum())
        self.with_line = int((carrier >= 0).sum())
        columns = self._line_columns(bones, carrier, inherits, by_forward, work)
        columns |= {
            "parent_id": _ids(parent, self._first),
            "self_ns": pa.array(own),
            "op_id": _ids(op, self._first),
            "launch_id": _ids(launch, self._first),
            "step": pa.array(step, pa.int32(), mask=step < 0),
            "phase": _phase_column(bones["phase"], parent, launch, op, self._forwards(len(step)), linked),
            "forward_id": _ids(self._forwards(len(step)), self._first),
        }
        for place in range(len(self._batches)):
            rows = self._load(place)
            places = rows.column("event_id").to_numpy() - self._first
            whole = int(places[-1]) - int(places[0]) + 1 == len(places)
            for name, values in columns.items():
                part = values.slice(int(places[0]), len(places)) if whole else values.take(pa.array(places))
                rows = rows.append_column(name, part)
            self._writer.write("events", rows)
        targets = np.flatnonzero(linked)
        self._write_edges(launch[targets] + self._first, targets + self._first, "launch")
        backward = np.fromiter(self.forward.keys(), np.int64, len(self.forward))
        forward = np.fromiter(self.forward.values(), np.int64, len(self.forward))
        self._write_edges(forward, backward, "forward_backward")
        if self._folder is not None:
            self._folder.remove()
        return int((bones["track"] >= 0).sum())

    def _carriers(self, site: Int64s, parent: Int64s) -> tuple[Int64s, np.ndarray[Any, Any]]:
        """The event whose line each event takes: its own, that of one around it, or that of a forward op.

        A backward op without a line of its own, and what it encloses, are charged to the line of its forward op.
        """
        own = site > 0
        carrier = nearest(own, parent)
        by_forward = np.zeros(len(site), bool)
        forward = self._forwards(len(site))
        backward = (forward >= 0) & ~own
        backward[backward] = carrier[forward[backward]] >= 0
        if backward.any():
            closest = nearest(own | backward, parent)
            known = closest >= 0
            by_forward[known] = backward[closest[known]]
            carrier[by_forward] = carrier[forward[closest[by_forward]]]
        return carrier, by_forward

    def _set_responsible(
        self, op: Int64s, working: Int64s, carrier: Int64s, by_forward: np.ndarray[Any, Any], site: Int64s
    ) -> None:
        if not self.responsible:
            return
        calls = np.fromiter(self.responsible.keys(), np.int64, len(self.responsible)) - self._first
        owners = np.fromiter(self.responsible.values(), np.int64, len(self.responsible)) - self._first
        found = working[owners] >= 0
        op[calls[found]] = working[owners[found]]
        without = site[calls] == 0
        carrier[calls[without]] = carrier[owners[without]]
        by_forward[calls[without]] = by_forward[owners[without]]

    def _forwards(self, count: int) -> Int64s:
        places = np.full(count, -1, np.int64)
        for backward, forward in self.forward.items():
            places[backward - self._first] = forward - self._first
        return places

    def _write_edges(self, source: Int64s, target: Int64s, kind: str) -> None:
        if len(source):
            ranks = np.full(len(source), self._writer.rank, np.int32)
            columns = {
                "source_id": source,
                "target_rank": ranks,
                "target_id": target,
                "kind": [kind] * len(source),
            }
            self._writer.write("edges", columns)

    def _line_columns(
        self,
        bones: dict[str, Any],
        carrier: Int64s,
        inherits: np.ndarray[Any, Any],
        by_forward: np.ndarray[Any, Any],
        work: np.ndarray[Any, Any],
    ) -> dict[str, pa.Array]:
        known = carrier >= 0
        safe = np.maximum(carrier, 0)
        site = np.where(known, bones["site"][safe], 0)
        stack = np.where(known, bones["stack"][safe], 0)
        attribution = np.where(known, bones["attribution"][safe], 0)
        attribution[known & inherits] = self._words.code("flow")
        attribution[known & by_forward] = self._words.code("forward")
        attribution[~known & work] = self._words.code("none")
        precision = np.where(known, bones["precision"][safe], 0)
        return {
            "site_id": pa.array(site, mask=site == 0),
            "stack_id": pa.array(stack, mask=stack == 0),
            "attribution": self._words.array(attribution),
            "precision": self._words.array(precision),
        }


def _ids(places: Int64s, first: int) -> pa.Array:
    return pa.array(places + first, mask=places < 0)


def _phase_column(
    opened: np.ndarray[Any, Any],
    parent: Int64s,
    launch: Int64s,
    op: Int64s,
    forward: Int64s,
    linked: np.ndarray[Any, Any],
) -> pa.Array:
    """Phase by the names of the ranges around an event; device work takes that of its op, else of its call."""
    is_forward = np.zeros(len(opened), bool)
    is_forward[forward[forward >= 0]] = True
    opened = np.where(forward >= 0, 1, opened)
    phase = phases(parent.astype(np.int32), opened, is_forward)
    source = np.where(op[linked] >= 0, op[linked], launch[linked])
    phase[linked] = phase[source]
    return pa.DictionaryArray.from_arrays(
        pa.array(phase, pa.int8(), mask=phase == 0), pa.array([name or "" for name in PHASES])
    )


def _launches(link: Int64s, start: Int64s, on_host: np.ndarray[Any, Any]) -> Int64s:
    """For every device event the first host event with its link key; -1 where there is none."""
    launch = np.full(len(link), -1, np.int64)
    hosts = np.flatnonzero(on_host & (link != 0))
    devices = np.flatnonzero(~on_host & (link != 0))
    if not len(hosts) or not len(devices):
        return launch
    hosts = hosts[np.lexsort((start[hosts], link[hosts]))]
    keys = link[hosts]
    places = np.minimum(np.searchsorted(keys, link[devices]), len(keys) - 1)
    hit = keys[places] == link[devices]
    launch[devices[hit]] = hosts[places[hit]]
    return launch


def _steps(start: Int64s, steps: Iterable[tuple[int, int, int]]) -> Int64s:
    ordered = sorted(steps, key=lambda step: step[1])
    if not ordered:
        return np.full(len(start), -1, np.int64)
    number, begin, end = (np.array(values, np.int64) for values in zip(*ordered))
    place = np.searchsorted(begin, start, side="right") - 1
    inside = (place >= 0) & (start < end[np.maximum(place, 0)])
    return np.where(inside, number[np.maximum(place, 0)], -1)
