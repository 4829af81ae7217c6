"""Savings of findings by replay: the run's dependency graph without the time that the advice would take away."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from explorer.analysis.affected_time import AffectedTime
from explorer.analysis.critical_path.host_lane import Ints, distinct
from explorer.analysis.critical_path.rank_events import row_numbers
from explorer.analysis.critical_path.replay import Prediction, Replay
from explorer.analysis.critical_path.selection import Selection, select_events
from explorer.analysis.engine import Engine
from explorer.analysis.intervals import Intervals
from explorer.analysis.replay_window import ReplayWindow
from explorer.analysis.rule import Draft
from explorer.analysis.step_scope import StepScope
from explorer.analysis.what_if import Replays, scale, summarise
from explorer.model.finding import Saving

SMALLEST_PART = 0.5
"""Replayed steps with less than this part of the usual affected time say nothing about the others."""


class ReplaySaving:
    """Predicts a draft's saving per step; usable as `replay` of `findings.find`."""

    def __init__(self, replays: Replays, window: ReplayWindow | None = None) -> None:
        """Args: window: the steps that `replays` holds; None: all."""
        self._replays = replays
        self.window = window

    def __call__(self, draft: Draft, scope: StepScope, affected: AffectedTime) -> Saving | None:
        """None where the rank cannot be replayed, the draft names no work of it, or the replayed steps hold less of that work
        than the others. `affected` is that of the draft.

        `expected` is the replayed saving with the draft's remaining share, `high` with nothing remaining, `low` the
        rule's own low bound where that is less.
        """
        if not replayable(self._replays.engine, scope.rank):
            return None
        if not len(affected) or (known := self._replays.of(scope.rank)) is None:
            return None
        if self.window and not _stands_for_all(self.window, scope, affected):
            return None
        replay, before = known
        numbers = self.window.numbers if self.window else scope.numbers
        if affected.event_id is not None:
            selection, waiting = _of_events(replay, affected.event_id)
        else:
            selection = _of_time(replay, affected.start_ns, affected.end_ns)
            waiting = np.zeros(0, np.int64)

        def saved(remaining: float) -> int:
            change = replay.unchanged()
            change.no_wait[waiting] = True
            scale(change, selection, remaining)
            return _saving(replay, before, replay.run(change), numbers)

        expected = saved(draft.remaining_share)
        high = saved(0.0) if draft.remaining_share else expected
        return Saving(min(expected, draft.saving.low), expected, max(expected, high), "replay")


def _stands_for_all(window: ReplayWindow, scope: StepScope, affected: AffectedTime) -> bool:
    time = Intervals.of(affected.start_ns, affected.end_ns)
    per_step = sum(time.within(*span).total_ns for span in scope.spans) / len(scope.spans)
    replayed = sum(time.within(*span).total_ns for span in window.spans) / len(window.spans)
    return replayed >= SMALLEST_PART * per_step


def replayable(engine: Engine, rank: int) -> bool:
    """The replay knows launches and streams, not the semaphores between a NeuronCore's engines and queues."""
    return not engine.reader.parts("neuron/Instruction", [rank])


def _of_events(replay: Replay, events: Ints) -> tuple[Selection, Ints]:
    """The events with what they enclose and enqueue; apart from them the waiting calls, which will wait no longer."""
    index = row_numbers(replay.events.event_id, events)
    waiting = np.isin(index, replay.events.sync_call)
    return select_events(replay, events[~waiting]), index[waiting]


def _of_time(replay: Replay, start: Ints, end: Ints) -> Selection:
    """Host time inside the intervals (disjoint or not)."""
    edges = distinct(start, end)
    depth = np.zeros(len(edges), np.int64)
    np.add.at(depth, np.searchsorted(edges, start), 1)
    np.add.at(depth, np.searchsorted(edges, end), -1)
    covered = np.append(0, np.cumsum((np.cumsum(depth)[:-1] > 0) * np.diff(edges)))

    def inside(times: Ints) -> Ints:
        slot = np.clip(np.searchsorted(edges, times, "right") - 1, 0, len(edges) - 2)
        rate = covered[slot + 1] > covered[slot]
        within = np.clip(times - edges[slot], 0, edges[slot + 1] - edges[slot])
        return np.asarray(np.where(times < edges[0], 0, covered[slot] + np.where(rate, within, 0)), np.int64)

    # The lane has no holes: each piece begins where the one before ends.
    cuts = np.append(replay.lane_start, replay.lane_end[-1:])
    part = np.diff(inside(cuts)) / np.maximum(np.diff(cuts), 1)
    return Selection(part, np.zeros(len(replay.events)))


def _saving(replay: Replay, before: Prediction, after: Prediction, changed: Sequence[int]) -> int:
    return max(0, summarise((), replay, before, after, changed).saving_ns)
