"""Replaying the steps of a job with some work or all transfer changed.

A rank arrives at a meeting its own work after it left the one before; a meeting ends its transfer after the last arrival.
Nothing changed gives the recorded step.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from explorer.analysis.ranks.meetings import Ints, JobSteps

Floats = npt.NDArray[np.float64]


class JobReplay:
    """Replays the steps; times in ns."""

    def __init__(self, steps: JobSteps) -> None:
        self.steps = steps
        # It had left before the last one came (a buffered send): it waits for nobody.
        self._alone = steps.left_ns < steps.last_arrival_ns
        self._transfer = np.where(
            self._alone, steps.left_ns - steps.arrival_ns, steps.left_ns - steps.last_arrival_ns
        )
        begins = (
            np.flatnonzero(np.append(True, steps.round[1:] != steps.round[:-1])).tolist()
            if len(steps.slot)
            else []
        )
        self._rounds = list(zip(begins, [*begins[1:], len(steps.slot)]))
        self._begin = np.minimum.reduceat(steps.start_ns, steps.first_of_step)

    @property
    def recorded_ns(self) -> Ints:
        """From the first rank's start to the last rank's end, per step."""
        return np.asarray(np.maximum.reduceat(self.steps.end_ns, self.steps.first_of_step) - self._begin)

    def run(self, work: Floats | Ints, tail: Floats | Ints, transfer: float = 1.0) -> Floats:
        """The same with other work before visits and after the last one, and transfers multiplied by `transfer`."""
        steps = self.steps
        # Relative to the step, so that a float keeps the nanosecond.
        origin = np.repeat(self._begin, np.diff(np.append(steps.first_of_step, len(steps.step_of_slot))))
        clock = (steps.start_ns - origin).astype(np.float64)
        for first, beyond in self._rounds:
            slot = steps.slot[first:beyond]
            arrival = clock[slot] + work[first:beyond]
            meeting = steps.meeting[first:beyond]
            begins = np.flatnonzero(np.append(True, meeting[1:] != meeting[:-1]))
            together = np.repeat(np.maximum.reduceat(arrival, begins), np.diff(np.append(begins, len(slot))))
            # What a rank recorded after the last arrival is transfer; an early rank's wait follows from the others.
            clock[slot] = (
                np.where(self._alone[first:beyond], arrival, together)
                + transfer * self._transfer[first:beyond]
            )
        return np.asarray(np.maximum.reduceat(clock + tail, steps.first_of_step))

    def most_saved_alone_ns(self) -> dict[int, Ints]:
        """An upper bound, per step, of what the job could gain by each rank's work alone taking less time.

        At a meeting the others wait for a rank no longer than from the latest of them to its arrival; what was gained at the
        meetings before moves all alike. So the gains of a step are at most the sum of these waits, and of the time from the
        second last end to the end of the last rank.
        """
        steps = self.steps
        slots = len(steps.step_of_slot)
        first = steps.first_of_step
        step = np.repeat(np.arange(len(first)), np.diff(np.append(first, slots)))
        ranks, rank = np.unique(steps.rank_of_slot, return_inverse=True)
        most = np.zeros((len(ranks), len(first)), np.int64)
        meeting = steps.meeting + (int(steps.meeting.max(initial=0)) + 1) * steps.round
        for slot, group, time in (
            (steps.slot, meeting, steps.arrival_ns),
            (np.arange(slots), step, steps.end_ns),
        ):
            last, gap = _ahead(group, time)
            np.add.at(most, (rank[slot[last]], step[slot[last]]), gap)
        return {int(one): most[number] for number, one in enumerate(ranks)}


def _ahead(group: Ints, time: Ints) -> tuple[Ints, Ints]:
    """The last row of each group, and how much later than the second last it is (0 where it is alone)."""
    if not len(group):
        return group, time
    order = np.lexsort((time, group))
    ends = np.flatnonzero(np.append(group[order][1:] != group[order][:-1], True))
    last, before = order[ends], order[np.maximum(ends - 1, 0)]
    paired = (ends > 0) & (group[before] == group[last])
    return last, np.where(paired, time[last] - time[before], 0)
