"""Sorting the rows of a trace by what they are: events, memory, counters, flow halves, metadata, or unusable."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from explorer.collectors.kineto.categories import classify
from explorer.collectors.kineto.clock import Clock, find_clock
from explorer.collectors.kineto.events import Events
from explorer.collectors.kineto.launches import NONE
from explorer.collectors.kineto.linking import Halves
from explorer.collectors.kineto.pairing import pair
from explorer.collectors.kineto.tracks import TrackFacts, describe_track, device_type_of

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

BEGINS, ENDS = ("B", "b", "S"), ("E", "e", "F")
ASYNC = ("b", "e", "n", "S", "T", "F", "p")
INSTANTS = ("i", "I", "R", "n", "T", "p")
FLOWS = ("s", "t", "f")
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
LIMIT_NS = 1 << 62
WEEK_NS = 7 * 86_400 * 1_000_000_000


@dataclass
class Collected:
    """Positions in the rows table by kind, and the tracks."""

    events: Events
    halves: Halves
    flow_rows: Ints
    memory_rows: Ints
    counter_rows: Ints
    other_rows: Ints
    refused: list[tuple[int, str]]
    merged_ends: Ints
    unfinished: Flags
    """Events that were still open at the end"""
    end_of: Ints
    """Row of the end of each event made from a pair, -1 else"""
    row_track: Ints
    row_time: Ints
    """Time of every row on the run's clock, `launches.NONE` where it has none"""
    tracks: list[dict[str, Any]]
    clock: Clock
    device_type: str
    counts: Counter[str] = field(default_factory=Counter)


def numbers(table: pa.Table, name: str) -> Ints:
    """An integer column as an array, absent as NONE."""
    column = table.column(name)
    return np.asarray(pc.fill_null(column.cast(pa.int64()), NONE).combine_chunks(), dtype=np.int64)


def codes(table: pa.Table, name: str) -> tuple[Ints, list[str | None]]:
    """A dictionary column as positions in a list of distinct values; absent is the last one, None."""
    column = table.column(name).combine_chunks()
    if isinstance(column, pa.ChunkedArray):
        column = (
            column.unify_dictionaries().chunk(0)
            if column.num_chunks
            else pa.array([], pa.string()).dictionary_encode()
        )
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    values: list[str | None] = [*column.dictionary.to_pylist(), None]
    found = np.asarray(pc.fill_null(column.indices.cast(pa.int64()), len(values) - 1), dtype=np.int64)
    return found, values


def collect(rows: pa.Table, top_level: dict[str, Any]) -> Collected:
    """Sort the rows of a trace."""
    count = rows.num_rows
    phase_code, phase_values = codes(rows, "ph")
    name_code, name_values = codes(rows, "name")
    category_code, category_values = codes(rows, "cat")
    pid_code, pid_values = codes(rows, "pid")
    tid_code, tid_values = codes(rows, "tid")
    time, length = numbers(rows, "ts"), numbers(rows, "dur")
    odd = np.asarray(pc.is_valid(rows.column("odd")).combine_chunks())

    def is_phase(*wanted: str) -> Flags:
        return np.array([value in wanted for value in phase_values], bool)[phase_code] & ~odd

    timed = time != NONE
    refused: list[tuple[int, str]] = []

    def refuse(flags: Flags, reason: str) -> None:
        refused.extend((int(row), reason) for row in np.flatnonzero(flags))

    refuse(odd, "not_an_object")
    refuse(
        np.array([not value for value in phase_values], bool)[phase_code] & ~odd,
        "no_phase",
    )

    slices = is_phase("X")
    memory_name = np.array([value == "[memory]" for value in name_values], bool)[name_code]
    instants = is_phase(*INSTANTS)
    memory = instants & memory_name & (numbers(rows, "size_bytes") != NONE)
    points = instants & ~memory
    begins, ends = is_phase(*BEGINS), is_phase(*ENDS)
    counters = is_phase("C")

    needs_time = slices | instants | begins | ends | counters
    bad = needs_time & ~timed
    refuse(bad, "no_time")
    far = needs_time & timed & (np.abs(time) >= LIMIT_NS)
    refuse(far, "time_out_of_range")
    negative = slices & timed & ~far & (length != NONE) & (length < 0)
    refuse(negative, "negative_duration")
    good = ~bad & ~far & ~negative
    usual = slices & good
    first = (
        int(np.median(time[usual]))
        if usual.any()
        else (int(time[timed & good & needs_time].min()) if (timed & good & needs_time).any() else None)
    )
    clock = find_clock(top_level, first)
    if first is not None and first > 3600 * 1_000_000_000:
        zero = slices & good & (time <= 0)
        refuse(zero, "impossible_time")
        good &= ~zero
    too_long = slices & good & (length != NONE) & ((length >= LIMIT_NS) | (length > 100 * WEEK_NS))
    refuse(too_long, "impossible_duration")
    good &= ~too_long
    row_time = np.where(timed & ~(np.abs(time) >= LIMIT_NS), time + clock.base_ns, NONE)

    # Tracks: one per (pid, tid).
    key = pid_code * len(tid_values) + tid_code
    used = np.unique(key)
    row_track = np.searchsorted(used, key)

    merged: list[int] = []
    begun: list[int] = []
    ended: list[int] = []
    paired = np.flatnonzero((begins | ends) & good)
    if len(paired):
        paired = paired[np.argsort(time[paired], kind="stable")]
        ids = rows.column("id").take(pa.array(paired)).to_pylist()
        phases_ = [phase_values[c] or "" for c in phase_code[paired]]
        keys = [
            (0, int(row_track[row]))
            if phase in ("B", "E")
            else (1 if phase in ("b", "e") else 2, int(category_code[row]), ident, int(pid_code[row]))
            for row, phase, ident in zip(paired.tolist(), phases_, ids)
        ]
        pairs = pair(
            paired.tolist(), keys, [name_values[c] for c in name_code[paired]], [p in BEGINS for p in phases_]
        )
        begun, ended = pairs.begun, pairs.ended
        merged = [row for row in ended if row >= 0]
        refused.extend((row, "end_without_begin") for row in pairs.orphans)
    last_time = (
        int(np.max(np.where(good & needs_time, time + np.where(slices & (length != NONE), length, 0), NONE)))
        if (good & needs_time).any()
        else 0
    )

    simple = np.flatnonzero((slices | points) & good)
    event_rows = np.concatenate([simple, np.array(begun, np.int64)]).astype(np.int64)
    end_of = np.concatenate([np.full(len(simple), -1), np.array(ended, np.int64)]).astype(np.int64)
    sort = np.argsort(event_rows, kind="stable")
    event_rows, end_of = event_rows[sort], end_of[sort]
    start = row_time[event_rows]
    duration = np.where(length[event_rows] == NONE, 0, length[event_rows])
    duration[points[event_rows]] = 0
    closed = end_of >= 0
    duration[closed] = time[end_of[closed]] - time[event_rows[closed]]
    unfinished = (end_of < 0) & begins[event_rows]
    duration[unfinished] = last_time - time[event_rows[unfinished]]

    processes, labels, threads = _metadata(
        rows, is_phase("M"), pid_values, tid_values, name_values, pid_code, tid_code, name_code
    )
    asynchronous = is_phase(*ASYNC)[event_rows]
    nest = row_track[event_rows].astype(np.int64)
    if asynchronous.any():
        which = np.flatnonzero(asynchronous)
        idents = rows.column("id").take(pa.array(event_rows[which])).to_pylist()
        names_of: dict[tuple[int, Any], int] = {}
        for place, ident in zip(which.tolist(), idents):
            number = names_of.setdefault((int(category_code[event_rows[place]]), ident), len(names_of))
            nest[place] = len(used) + number

    category, on_device, categories = _classify(
        event_rows, category_code, name_code, pid_code, category_values, name_values, pid_values, processes
    )
    events = Events(
        row=event_rows,
        track=row_track[event_rows].astype(np.int64),
        nest=nest,
        name=name_code[event_rows],
        category=category,
        source_category=category_code[event_rows],
        start=start,
        duration=duration,
        on_device=on_device,
        asynchronous=asynchronous,
        correlation=numbers(rows, "correlation_id")[event_rows],
        external=numbers(rows, "external_id")[event_rows],
        sequence=numbers(rows, "sequence_number")[event_rows],
        forward_thread=numbers(rows, "forward_thread")[event_rows],
        names=[value or "" for value in name_values],
        categories=categories,
        source_categories=category_values,
    )
    flows = np.flatnonzero(is_phase(*FLOWS))
    usable = flows[timed[flows] & (np.abs(time[flows]) < LIMIT_NS)]
    halves = _halves(
        rows, usable, category_code, category_values, name_code, row_track, row_time, is_phase("s")
    )
    device_type = device_type_of(
        {c for c in category_values if c},
        top_level,
        [events.names[n] for n in np.unique(events.name)],
        {p for p in processes.values() if p},
    )
    tracks = _tracks(
        events,
        used,
        len(tid_values),
        pid_values,
        tid_values,
        numbers(rows, "stream")[event_rows],
        numbers(rows, "device")[event_rows],
        device_type,
        processes,
        labels,
        threads,
        np.unique(row_track[counters]),
    )
    known = slices | instants | begins | ends | counters
    refused_rows = np.zeros(count, bool)
    refused_rows[[row for row, _ in refused]] = True
    return Collected(
        events=events,
        halves=halves,
        flow_rows=usable,
        memory_rows=np.flatnonzero(memory & good),
        counter_rows=np.flatnonzero(counters & good),
        other_rows=np.flatnonzero(~known & ~refused_rows),
        refused=sorted(refused),
        merged_ends=np.array(merged, np.int64),
        unfinished=unfinished,
        end_of=end_of,
        row_track=row_track,
        row_time=row_time,
        tracks=tracks,
        clock=clock,
        device_type=device_type,
    )


def _metadata(
    rows: pa.Table,
    is_meta: Flags,
    pids: list[str | None],
    tids: list[str | None],
    names: list[str | None],
    pid_code: Ints,
    tid_code: Ints,
    name_code: Ints,
) -> tuple[dict[int, str], dict[int, str], dict[tuple[int, int], str]]:
    """Process names and labels by pid code, thread names by (pid code, tid code)."""
    processes: dict[int, str] = {}
    labels: dict[int, str] = {}
    threads: dict[tuple[int, int], str] = {}
    which = np.flatnonzero(is_meta)
    texts = rows.column("label").take(pa.array(which)).to_pylist()
    for row, text in zip(which.tolist(), texts):
        name = names[name_code[row]]
        if text is None:
            continue
        if name == "process_name":
            processes[int(pid_code[row])] = text
        elif name == "process_labels":
            labels[int(pid_code[row])] = text
        elif name == "thread_name":
            threads[int(pid_code[row]), int(tid_code[row])] = text
    return processes, labels, threads


def _classify(
    event_rows: Ints,
    category_code: Ints,
    name_code: Ints,
    pid_code: Ints,
    categories: list[str | None],
    names: list[str | None],
    pids: list[str | None],
    processes: dict[int, str],
) -> tuple[Ints, Flags, list[str]]:
    """Our category and the side of every event, once per distinct (category, name, process)."""
    width = len(names)
    uncategorised = np.array([not value for value in categories], bool)[category_code[event_rows]]
    process = np.where(uncategorised, pid_code[event_rows], -1) + 1
    key = (category_code[event_rows] * width + name_code[event_rows]) * (len(pids) + 1) + process
    distinct, inverse = np.unique(key, return_inverse=True)
    ours: list[str] = []
    position: dict[str, int] = {}
    found = np.empty(len(distinct), np.int64)
    device = np.empty(len(distinct), bool)
    for index, value in enumerate(distinct.tolist()):
        rest, pid = divmod(value, len(pids) + 1)
        category, name = divmod(rest, width)
        word, on_device = classify(
            categories[category], names[name] or "", processes.get(pid - 1) if pid else None
        )
        if word not in position:
            position[word] = len(ours)
            ours.append(word)
        found[index], device[index] = position[word], on_device
    if not len(distinct):
        return np.empty(0, np.int64), np.empty(0, bool), ["other"]
    return found[inverse], device[inverse], ours


def _halves(
    rows: pa.Table,
    usable: Ints,
    category_code: Ints,
    categories: list[str | None],
    name_code: Ints,
    row_track: Ints,
    row_time: Ints,
    is_source: Flags,
) -> Halves:
    ids = rows.column("id").take(pa.array(usable)).combine_chunks()
    ids = pc.fill_null(pc.utf8_trim(ids, '"'), "").dictionary_encode()
    number = np.asarray(ids.indices, dtype=np.int64) if len(ids) else np.empty(0, np.int64)
    return Halves(
        key=category_code[usable] * (len(ids.dictionary) + 1) + number,
        track=row_track[usable].astype(np.int64),
        instant=row_time[usable],
        is_source=is_source[usable],
        category=np.array([c or "" for c in categories], object)[category_code[usable]],
    )


def _tracks(
    events: Events,
    used: Ints,
    width: int,
    pids: list[str | None],
    tids: list[str | None],
    stream: Ints,
    device: Ints,
    device_type: str,
    processes: dict[int, str],
    labels: dict[int, str],
    threads: dict[tuple[int, int], str],
    counter_tracks: Ints,
) -> list[dict[str, Any]]:
    facts = [TrackFacts() for _ in used]
    for track in np.unique(events.track):
        mine = events.track == track
        fact = facts[track]
        fact.on_device = bool(events.on_device[mine].any())
        fact.asynchronous = bool(events.asynchronous[mine].all())
        if fact.on_device:
            fact.stream = _usual(stream[mine & events.on_device])
            fact.device = _usual(device[mine & events.on_device])
    with_events = set(np.unique(events.track).tolist())
    for track in counter_tracks.tolist():
        facts[track].counter_only = track not in with_events
    result = []
    for track, key in enumerate(used.tolist()):
        pid, tid = divmod(key, width)
        result.append(
            describe_track(
                track,
                pids[pid],
                tids[tid],
                facts[track],
                device_type,
                processes.get(pid),
                labels.get(pid),
                threads.get((pid, tid)),
            )
        )
    return result


def _usual(values: Ints) -> int | None:
    known = values[values != NONE]
    if not len(known):
        return None
    distinct, counts = np.unique(known, return_counts=True)
    return int(distinct[np.argmax(counts)])
