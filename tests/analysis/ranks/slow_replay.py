"""The replay of a job's step written out, call by call and rank by rank: what the fast one must equal."""

from __future__ import annotations

import bisect
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

Call = dict[str, int]
Work = Callable[[int, int, int], float]
"""(rank, number of the stretch in the step, recorded ns) to its changed length."""


@dataclass
class Step:
    starts: dict[int, int]
    ends: dict[int, int]
    meetings: list[list[Call]]


def meetings(rows: list[Call]) -> list[list[Call]]:
    """Calls of one step (one row per rank, by arrival) joined where they overlap on a rank, by last arrival."""
    joined: dict[int, int] = {}

    def root(match: int) -> int:
        while joined.setdefault(match, match) != match:
            match = joined[match]
        return match

    open_until: dict[int, tuple[int, int]] = {}
    for row in rows:
        end, match = open_until.get(row["rank"], (row["arrival_ns"], row["match_id"]))
        if row["arrival_ns"] < end:
            joined[root(row["match_id"])] = root(match)
        if row["end_ns"] >= end:
            open_until[row["rank"]] = (row["end_ns"], row["match_id"])
    found: dict[int, dict[int, Call]] = {}
    for row in rows:
        members = found.setdefault(root(row["match_id"]), {})
        one = members.setdefault(row["rank"], {"rank": row["rank"], "arrival_ns": 0, "end_ns": 0})
        one["arrival_ns"] = max(one["arrival_ns"], row["arrival_ns"])
        one["end_ns"] = max(one["end_ns"], row["end_ns"])
    result = []
    for members in found.values():
        last = max(one["arrival_ns"] for one in members.values())
        result.append([{**one, "last_arrival_ns": last} for one in members.values()])
    return sorted(result, key=lambda meeting: meeting[0]["last_arrival_ns"])


def usual(steps: list[Step]) -> dict[tuple[int, int], float]:
    """(rank, number of the stretch) to the median of the other ranks, each at its own median over steps."""
    lengths: dict[int, dict[int, list[int]]] = {}
    for step in steps:
        for rank, number, length in stretches(step):
            lengths.setdefault(number, {}).setdefault(rank, []).append(length)
    found: dict[tuple[int, int], float] = {}
    for number, ranks in lengths.items():
        own = {rank: median(values) for rank, values in ranks.items()}
        ordered = sorted(own.values())
        for rank, value in own.items():
            place = bisect.bisect_left(ordered, value)
            others = ordered[:place] + ordered[place + 1 :]
            if others:
                found[rank, number] = median(others)
    return found


def stretches(step: Step) -> list[tuple[int, int, int]]:
    """(rank, number, ns) of the work before each meeting, and after the last one."""
    free, count = dict(step.starts), dict.fromkeys(step.starts, 0)
    found = []
    for meeting in step.meetings:
        for row in meeting:
            rank = row["rank"]
            found.append((rank, count[rank], row["arrival_ns"] - free[rank]))
            free[rank] = row["end_ns"]
            count[rank] += 1
    found += [(rank, count[rank], step.ends[rank] - free[rank]) for rank in free]
    return found


def replayed(step: Step, work: Work, transfer: float) -> float:
    recorded, count = dict(step.starts), dict.fromkeys(step.starts, 0)
    clock: dict[int, float] = dict(step.starts)
    for meeting in step.meetings:
        alone: dict[int, float] = {}
        for row in meeting:
            rank = row["rank"]
            clock[rank] += work(rank, count[rank], row["arrival_ns"] - recorded[rank])
            recorded[rank] = row["end_ns"]
            count[rank] += 1
            if row["end_ns"] < row["last_arrival_ns"]:
                alone[rank] = clock[rank] + transfer * (row["end_ns"] - row["arrival_ns"])
        together = max(clock[row["rank"]] for row in meeting)
        for row in meeting:
            rank = row["rank"]
            clock[rank] = alone.get(rank, together + transfer * (row["end_ns"] - row["last_arrival_ns"]))
    for rank in clock:
        clock[rank] += work(rank, count[rank], step.ends[rank] - recorded[rank])
    return max(clock.values()) - min(step.starts.values())
