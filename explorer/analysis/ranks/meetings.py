"""The steps of a job as arrays: which ranks met when, and how long each worked in between.

A meeting is a call, or several that overlap on a rank (the buckets of one backward pass): a rank has arrived when it has
started the last of them, and has left when the last of them ended. A slot is one rank in one step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class JobSteps:
    """Slots, and visits: one row for each slot that takes part in a meeting.

    Visits come in an order in which each can be replayed: by `round`, then by meeting. No slot has two visits in one round,
    and a meeting's visits are all in the same one. `work_ns` is the time since the slot's visit before (the start of the
    step for its first), `stretch` the number of that work in its slot, from 0.
    """

    step_of_slot: Ints
    rank_of_slot: Ints
    start_ns: Ints
    end_ns: Ints
    tail_ns: Ints
    """Work after the last visit of each slot"""
    tail_stretch: Ints
    slot: Ints
    meeting: Ints
    round: Ints
    arrival_ns: Ints
    left_ns: Ints
    last_arrival_ns: Ints
    """Of the visit's meeting"""
    work_ns: Ints
    stretch: Ints

    @property
    def first_of_step(self) -> Ints:
        """The first slot of each step; slots are in order of their steps."""
        return _starts(self.step_of_slot)

    @property
    def rank(self) -> Ints:
        """The rank of each visit."""
        return self.rank_of_slot[self.slot]


def job_steps(slots: Mapping[str, Ints], calls: Mapping[str, Ints]) -> JobSteps:
    """Arrays from rows.

    Args:
        slots: step, rank, start_ns, end_ns, in aligned time; one row per rank and step, in that order.
        calls: step, match_id, rank, arrival_ns, end_ns, each on a slot; steps without any are left out, and so are
            those of one rank.
    """
    shared = np.isin(slots["step"], np.unique(calls["step"]))
    _, place, size = np.unique(slots["step"], return_inverse=True, return_counts=True)
    kept = shared & (size[place] > 1)
    step, rank, start, end = (slots[name][kept] for name in ("step", "rank", "start_ns", "end_ns"))
    slot_of = _finder(step, rank)
    call_slot = slot_of(calls["step"], calls["rank"])
    on_slot = call_slot >= 0
    call_slot = call_slot[on_slot]
    match, arrival, left = (calls[name][on_slot] for name in ("match_id", "arrival_ns", "end_ns"))
    meeting = meetings(step[call_slot], match, call_slot, arrival, left)
    # One visit per slot and meeting.
    order = np.lexsort((call_slot, meeting))
    begins = _starts(meeting[order], call_slot[order])
    if len(begins):
        arrival = np.maximum.reduceat(arrival[order], begins)
        left = np.maximum.reduceat(left[order], begins)
    meeting, slot = meeting[order][begins], call_slot[order][begins]
    first = _starts(meeting)
    last = np.maximum.reduceat(arrival, first) if len(first) else arrival
    last = np.repeat(last, np.diff(np.append(first, len(meeting))))
    turn = _rounds(meeting, slot, arrival, last, len(step))
    order = np.lexsort((slot, meeting, turn))
    slot, meeting, turn, arrival, left, last = (
        values[order] for values in (slot, meeting, turn, arrival, left, last)
    )
    work, stretch, tail, tail_stretch = _work(slot, turn, arrival, left, start, end)
    return JobSteps(
        step, rank, start, end, tail, tail_stretch, slot, meeting, turn, arrival, left, last, work, stretch
    )


def meetings(step: Ints, match: Ints, slot: Ints, arrival_ns: Ints, end_ns: Ints) -> Ints:
    """The meeting of each call on a slot, as a number: equal where calls overlap on some slot, directly or through others."""
    if not len(slot):
        return slot
    # Calls of a slot that overlap, one after the other, form a chain.
    order = np.lexsort((match, arrival_ns, slot))
    own = slot[order]
    begins = _starts(own)
    base = np.repeat(arrival_ns[order][begins], np.diff(np.append(begins, len(own))))
    arrival, end = arrival_ns[order] - base, end_ns[order] - base
    # Slots are kept apart by more than any time within one.
    apart = own * (int(max(end.max(), arrival.max())) + 1)
    reached = np.maximum.accumulate(np.maximum(end, arrival) + apart)
    breaks = np.append(True, (arrival + apart)[1:] >= reached[:-1])
    chain = np.empty(len(slot), np.int64)
    chain[order] = np.cumsum(breaks) - 1
    _, call = np.unique(np.stack([step, match], axis=1), axis=0, return_inverse=True)
    return _connected(chain, call.reshape(-1))


def _connected(left: Ints, right: Ints) -> Ints:
    """Component of each edge of a graph between two sets of numbers: the smallest number of `right` in it."""
    label = np.arange(int(right.max()) + 1)
    while True:
        lowest = np.full(int(left.max()) + 1, len(label))
        np.minimum.at(lowest, left, label[right])
        better = label.copy()
        np.minimum.at(better, right, lowest[left])
        # Labels are themselves numbers of `right`: following them halves the way.
        better = better[better]
        if (better == label).all():
            return np.asarray(label[right])
        label = better


def _rounds(meeting: Ints, slot: Ints, arrival_ns: Ints, last_arrival_ns: Ints, slots: int) -> Ints:
    """The round of each visit. Each slot visits its meetings in order of their last arrivals; all meetings whose turn it is
    on all their slots make one round."""
    if not len(slot):
        return slot
    # Meetings numbered in that order.
    first = _starts(meeting)
    size = np.diff(np.append(first, len(meeting)))
    earliest = np.minimum.reduceat(arrival_ns, first)
    place = np.empty(len(first), np.int64)
    place[np.lexsort((meeting[first], earliest, last_arrival_ns[first]))] = np.arange(len(first))
    number = np.repeat(place, size)
    members = np.empty(len(first), np.int64)
    members[place] = size
    queue = np.lexsort((number, slot))
    queued_slot, queued = slot[queue], number[queue]
    begin = np.searchsorted(queued_slot, np.arange(slots))
    beyond = np.append(begin[1:], len(queue))
    head = begin.copy()
    round_of = np.empty(len(slot), np.int64)
    turn = 0
    active = np.flatnonzero(head < beyond)
    while len(active):
        front = queued[head[active]]
        _, one, here = np.unique(front, return_inverse=True, return_counts=True)
        ready = here[one] == members[front]
        going = active[ready]
        round_of[queue[head[going]]] = turn
        head[going] += 1
        active = active[head[active] < beyond[active]]
        turn += 1
    return round_of


def _work(
    slot: Ints, turn: Ints, arrival: Ints, left: Ints, start: Ints, end: Ints
) -> tuple[Ints, Ints, Ints, Ints]:
    """Work before each visit and its number in the slot; work after the last visit of each slot and its number."""
    order = np.lexsort((turn, slot))
    own = slot[order]
    first = np.append(True, own[1:] != own[:-1])[: len(own)]
    free = np.where(first, start[own], np.append(0, left[order][:-1])[: len(own)])
    work, stretch = np.empty(len(slot), np.int64), np.empty(len(slot), np.int64)
    work[order] = arrival[order] - free
    begins = np.flatnonzero(first)
    count = np.diff(np.append(begins, len(own)))
    stretch[order] = np.arange(len(own)) - np.repeat(begins, count)
    visits = np.zeros(len(start), np.int64)
    free_at_end = start.copy()
    visits[own[begins]] = count
    free_at_end[own[begins]] = left[order][begins + count - 1]
    return work, stretch, end - free_at_end, visits


def _finder(step: Ints, rank: Ints) -> Callable[[Ints, Ints], Ints]:
    """A function from (step, rank) to the number of the slot; -1 where there is none."""
    base = int(rank.max()) + 1 if len(rank) else 1
    keys = step * base + rank

    def find(steps: Ints, ranks: Ints) -> Ints:
        wanted = np.where(ranks < base, steps * base + ranks, np.iinfo(np.int64).min)
        if not len(keys):
            return np.full(len(wanted), -1, np.int64)
        slot = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        return np.where(keys[slot] == wanted, slot, -1)

    return find


def _starts(*keys: Ints) -> Ints:
    """Where a new combination of keys begins, in rows sorted by them."""
    if not len(keys[0]):
        return np.zeros(0, np.int64)
    changed = np.zeros(len(keys[0]) - 1, bool)
    for key in keys:
        changed |= key[1:] != key[:-1]
    return np.flatnonzero(np.append(True, changed))
