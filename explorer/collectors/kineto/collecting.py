"""Sorting the rows of a trace by what they are: events, memory, counters, flow halves, metadata, or unusable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from explorer.collectors.kineto.clock import Clock, find_clock
from explorer.collectors.kineto.distinct import distinct
from explorer.collectors.kineto.events import Events
from explorer.collectors.kineto.kinds import classify_events
from explorer.collectors.kineto.light import NONE, UNREAD, LightRows
from explorer.collectors.kineto.linking import Halves
from explorer.collectors.kineto.pairing import pair
from explorer.collectors.kineto.tracks import device_type_of, find_tracks, process_facts

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

BEGINS, ENDS = ("B", "b", "S"), ("E", "e", "F")
ASYNC = ("b", "e", "n", "S", "T", "F", "p")
INSTANTS = ("i", "I", "R", "n", "T", "p")
FLOWS = ("s", "t", "f")
LIMIT_NS = 1 << 62
HOUR_NS = 3600 * 1_000_000_000
REASONS = (
    "not_an_object",
    "no_phase",
    "no_time",
    "time_out_of_range",
    "negative_duration",
    "impossible_time",
    "impossible_duration",
    "end_without_begin",
)
"""Why a row cannot be used."""
LONGEST_NS = 100 * 7 * 24 * HOUR_NS
"""No event lasts longer than this many nanoseconds: a hundred weeks."""


@dataclass
class Refused:
    """Rows that cannot be used, ascending; `why` has positions in REASONS."""

    row: Ints
    why: npt.NDArray[np.int8]


@dataclass
class Collected:
    """Row numbers by kind, ascending, and the tracks."""

    events: Events
    halves: Halves
    memory_rows: Ints
    memory_time: Ints
    counter_rows: Ints
    other_rows: Ints
    refused: Refused
    merged_ends: int
    unfinished: Ints
    """Positions of events that were still open at the end"""
    closed: Ints
    """Positions of events made from a pair, ascending"""
    end_row: Ints
    """Row of the end of each of these"""
    tracks: list[dict[str, Any]]
    clock: Clock
    device_type: str
    without_duration: int
    """Complete events (`X`) that have no duration"""
    unread_durations: int
    """Complete events whose duration is no number"""


def collect(light: LightRows, top_level: dict[str, Any]) -> Collected:
    """Sort the rows of a trace."""
    time, length = light.time, light.length
    unread = length == UNREAD
    if unread.any():
        length = np.where(unread, NONE, length)
    regular = np.ones(len(light), bool)
    regular[light.odd] = False

    def is_phase(*wanted: str) -> Flags:
        table = np.array([value in wanted for value in light.phases], bool)
        return table[light.phase] & regular if len(table) else np.zeros(len(light), bool)

    refused: list[tuple[Ints, str]] = [(light.odd, "not_an_object")]
    nameless = np.array([not value for value in light.phases], bool)
    if nameless.any():
        refused.append((np.flatnonzero(nameless[light.phase] & regular), "no_phase"))

    slices, counters = is_phase("X"), is_phase("C")
    begins, ends = is_phase(*BEGINS), is_phase(*ENDS)
    instants = is_phase(*INSTANTS)
    memory = _memory(light, instants)
    known = slices | instants | begins | ends | counters
    timed = time != NONE

    def refuse(flags: Flags, reason: str) -> Flags:
        refused.append((np.flatnonzero(flags), reason))
        return ~flags

    good = known & refuse(known & ~timed, "no_time")
    good &= refuse(good & (np.abs(time) >= LIMIT_NS), "time_out_of_range")
    good &= refuse(good & slices & (length != NONE) & (length < 0), "negative_duration")
    typical = _typical(time, good & slices) or _typical(time, good)
    clock = find_clock(top_level, typical)
    if typical is not None and typical > HOUR_NS:
        good &= refuse(good & slices & (time <= 0), "impossible_time")
    good &= refuse(good & slices & (length > LONGEST_NS), "impossible_duration")

    begun, ended, orphans = _pair(light, begins, (begins | ends) & good)
    refused.append((orphans, "end_without_begin"))
    reach = time[good & slices] + np.maximum(length[good & slices], 0)
    last = max(int(reach.max(initial=NONE)), int(time[good].max(initial=NONE)))

    simple = np.flatnonzero((slices | (instants & ~memory)) & good)
    row = np.concatenate([simple, begun])
    end_row = np.concatenate([np.full(len(simple), -1), ended])
    if len(begun):
        order = np.argsort(row, kind="stable")
        row, end_row = row[order], end_row[order]
    duration = np.where(length[row] == NONE, 0, length[row])
    duration[instants[row]] = 0
    closed = np.flatnonzero(end_row >= 0)
    duration[closed] = time[end_row[closed]] - time[row[closed]]
    unfinished = np.flatnonzero(begins[row] & (end_row < 0))
    duration[unfinished] = last - time[row[unfinished]]
    del simple, reach

    processes = process_facts(light, is_phase("M"))
    category, on_device, categories = classify_events(light, row, processes)
    asynchronous = is_phase(*ASYNC)[row] if len(begun) or is_phase(*ASYNC).any() else np.zeros(len(row), bool)
    track = light.track[row]
    events = Events(
        row=row,
        track=track,
        nest=_nest(light, row, track, asynchronous),
        name=light.name[row],
        category=category,
        source_category=light.category[row],
        start=time[row] + clock.base_ns,
        duration=duration,
        on_device=on_device,
        asynchronous=asynchronous,
        correlation=light.numbers["correlation_id"].within(row),
        external=light.numbers["external_id"].within(row),
        sequence=light.numbers["sequence_number"].within(row),
        forward_thread=light.numbers["forward_thread"].within(row),
        names=[value or "" for value in light.names],
        categories=categories,
        source_categories=light.categories,
    )
    flows = np.flatnonzero(is_phase(*FLOWS))
    flows = flows[timed[flows] & (np.abs(time[flows]) < LIMIT_NS)]
    device_type = device_type_of(
        {c for c in light.categories if c}, top_level, light.names, set(processes.names.values())
    )
    unusable = _in_order(refused)
    rest = ~known
    rest[unusable.row] = False
    return Collected(
        events=events,
        halves=_halves(light, flows, is_phase("s"), clock),
        memory_rows=(memory_rows := np.flatnonzero(memory & good)),
        memory_time=time[memory_rows] + clock.base_ns,
        counter_rows=np.flatnonzero(counters & good),
        other_rows=np.flatnonzero(rest),
        refused=unusable,
        merged_ends=len(closed),
        unfinished=unfinished,
        closed=closed,
        end_row=end_row[closed],
        tracks=find_tracks(light, events, np.unique(light.track[counters]), device_type, processes),
        clock=clock,
        device_type=device_type,
        without_duration=int((slices & good & (length == NONE) & ~unread).sum()),
        unread_durations=int((slices & good & unread).sum()),
    )


def _memory(light: LightRows, instants: Flags) -> Flags:
    named = np.array([value == "[memory]" for value in light.names], bool)
    result = np.zeros(len(light), bool)
    if named.any():
        sized = light.sized
        result[sized] = named[light.name[sized]] & instants[sized]
    return result


def _typical(time: Ints, which: Flags) -> int | None:
    found = time[which]
    return int(np.median(found)) if len(found) else None


def _in_order(refused: list[tuple[Ints, str]]) -> Refused:
    row = np.concatenate([rows for rows, _ in refused])
    why = np.concatenate([np.full(len(rows), REASONS.index(reason), np.int8) for rows, reason in refused])
    order = np.argsort(row, kind="stable")
    return Refused(row[order], why[order])


def _pair(light: LightRows, begins: Flags, which: Flags) -> tuple[Ints, Ints, Ints]:
    """Begin rows, the row that ends each (-1: none does), and end rows without a begin."""
    rows = np.flatnonzero(which)
    if not len(rows):
        return rows, rows, rows
    rows = rows[np.argsort(light.time[rows], kind="stable")]
    nameless = np.array([not name for name in light.names], bool)
    name = light.name[rows]
    name = np.where(nameless[name], np.int32(-1), name)
    begin = begins[rows]
    partner = pair(_pair_keys(light, rows), name, begin)
    first = np.flatnonzero(begin)
    last = partner[first]
    ended = np.where(last >= 0, rows[np.maximum(last, 0)], -1)
    return rows[first], ended, rows[~begin & (partner < 0)]


def _pair_keys(light: LightRows, rows: Ints) -> npt.NDArray[np.int32]:
    """Numbers of what begins and ends belong together by: the thread, or the way of writing, category, id and process."""
    kinds = [0 if phase in ("B", "E") else 1 if phase in ("b", "e") else 2 for phase in light.phases]
    kind = np.array(kinds, np.int64)[light.phase[rows]]
    track = light.track[rows].astype(np.int64)
    alone = kind == 0
    if alone.all():
        return distinct(track)[1]
    processes: dict[str | None, int] = {}
    process_of = np.array([processes.setdefault(pid, len(processes)) for pid, _ in light.tracks], np.int64)
    category = light.category[rows].astype(np.int64)
    shared = (category * 3 + kind) * len(processes) + process_of[track]
    _, coarse = distinct(np.where(alone, -1 - track, shared))
    found, ident = distinct(np.where(alone, 0, light.numbers["ident"].at(rows)))
    return distinct(coarse.astype(np.int64) * len(found) + ident)[1]


def _nest(
    light: LightRows, row: Ints, track: npt.NDArray[np.int32], asynchronous: Flags
) -> npt.NDArray[np.int32]:
    """The track for nesting: async events with different ids never enclose each other."""
    if not asynchronous.any():
        return track
    nest = track.copy()
    which = np.flatnonzero(asynchronous)
    idents = light.numbers["ident"].at(row[which])
    _, number = np.unique(np.stack([idents, light.category[row[which]]]), axis=1, return_inverse=True)
    nest[which] = len(light.tracks) + number.reshape(-1)
    return nest


def _halves(light: LightRows, rows: Ints, is_source: Flags, clock: Clock) -> Halves:
    idents = light.numbers["ident"].at(rows)
    _, number = distinct(idents)
    return Halves(
        key=light.category[rows].astype(np.int64) * (len(number) + 1) + number,
        track=light.track[rows].astype(np.int64),
        instant=light.time[rows] + clock.base_ns,
        is_source=is_source[rows],
        category=light.category[rows],
        categories=[category or "" for category in light.categories],
    )
