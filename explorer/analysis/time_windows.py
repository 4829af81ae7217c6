"""The steps of each rank and the recorded time outside them: the windows into which times are split."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from explorer.analysis.intervals import Intervals, Times

if TYPE_CHECKING:
    from explorer.analysis.engine import Engine


@dataclass(frozen=True)
class TimeWindows:
    """Windows of one rank.

    `number`, `start_ns`, `end_ns`: its steps (`step_windows`); `outside`: recorded time in no step and no capture pause.
    """

    rank: int
    number: Times
    start_ns: Times
    end_ns: Times
    outside: Intervals

    @property
    def numbers(self) -> Times:
        """The numbers of the steps, and 0 for the time outside them if there is any."""
        return np.append(self.number, 0) if len(self.outside.start_ns) else self.number

    @property
    def starts_ns(self) -> Times:
        """Where each window of `numbers` begins."""
        return np.append(self.start_ns, self.outside.start_ns[:1])

    def inside_ns(self, time: Intervals) -> Times:
        """How much of the time lies in each window of `numbers`."""
        steps = time.covered_before(self.end_ns) - time.covered_before(self.start_ns)
        if not len(self.outside.start_ns):
            return steps
        return np.append(steps, self.outside.overlap_ns(time))

    @property
    def lengths_ns(self) -> Times:
        """Length of each window of `numbers`."""
        lengths = self.end_ns - self.start_ns
        return np.append(lengths, self.outside.total_ns) if len(self.outside.start_ns) else lengths


def time_windows(engine: Engine) -> dict[int, TimeWindows]:
    """The windows of every rank that was recorded, by rank."""
    steps: dict[int, list[tuple[int, int, int]]] = {}
    for row in engine.sql(
        "SELECT rank, number, start_ns, end_ns FROM step_windows ORDER BY rank, number"
    ).rows():
        steps.setdefault(row["rank"], []).append((row["number"], row["start_ns"], row["end_ns"]))
    pauses: dict[int, list[tuple[int, int]]] = {}
    for row in engine.sql("SELECT rank, start_ns, end_ns FROM capture_pauses").rows():
        pauses.setdefault(row["rank"], []).append((row["start_ns"], row["end_ns"]))
    windows = {}
    for row in engine.sql("SELECT rank, start_ns, end_ns FROM rank_extent ORDER BY rank").rows():
        rank = row["rank"]
        own = np.array(steps.get(rank, []), np.int64).reshape(-1, 3)
        covered = np.concatenate([own[:, 1:], np.array(pauses.get(rank, []), np.int64).reshape(-1, 2)])
        outside = _without(row["start_ns"], row["end_ns"], Intervals.of(covered[:, 0], covered[:, 1]))
        windows[rank] = TimeWindows(rank, own[:, 0], own[:, 1], own[:, 2], outside)
    return windows


def _without(start_ns: int, end_ns: int, covered: Intervals) -> Intervals:
    """One interval without the covered time."""
    begin = np.maximum(np.append(start_ns, covered.end_ns), start_ns)
    end = np.minimum(np.append(covered.start_ns, end_ns), end_ns)
    kept = end > begin
    return Intervals(begin[kept], end[kept])
