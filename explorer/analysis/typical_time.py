"""How long the time that a finding is about is in the typical step, without what recording it cost."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from explorer.analysis.intervals import Intervals
from explorer.analysis.profiling_cost import Costs, ProfilingCost
from explorer.analysis.step_scope import Span, StepScope


@dataclass(frozen=True)
class TypicalTime:
    """Affected host time per step: mean of the steps in scope and median of the replayed ones as recorded, and of the typical
    step without what recording cost."""

    mean_ns: float
    median_ns: float
    typical_ns: float

    @property
    def from_mean(self) -> float:
        """Factor from a recorded mean to the typical step."""
        return self.typical_ns / self.mean_ns if self.mean_ns else 1.0

    @property
    def from_median(self) -> float:
        return self.typical_ns / self.median_ns if self.median_ns else 1.0


def net_steps(cost: ProfilingCost, scope: StepScope) -> Costs:
    """Length of each step in scope without what recording it cost."""
    return np.array(
        [end - start - cost.inside_ns(Intervals.of([start], [end])) for start, end in scope.spans]
    )


def typical_time(
    time: Intervals,
    cost: ProfilingCost,
    scope: StepScope,
    net: Costs,
    contended: bool,
    replayed: Collection[Span] = (),
) -> TypicalTime:
    """The typical step is as long as the median one, and affected in the median part, so that single interruptions do not
    show. (Cost is taken off step by step: hot code is recorded in some steps and not in others.)

    Where other programs take the processor all the time, interruptions hit long stretches more often than short ones and a
    median would favour the short: there the part is that of all steps together.

    Args:
        time: what is affected.
        net: `net_steps`.
        replayed: the spans that a replay looks at; empty: all in scope.
    """
    parts = [time.within(start, end) for start, end in scope.spans]
    recorded = np.array([part.total_ns for part in parts], dtype=float)
    affected = np.array([part.total_ns - cost.inside_ns(part) for part in parts])
    steps = np.maximum(1.0, net)
    lengths = np.array([end - start for start, end in scope.spans], dtype=float)
    seen = np.array([not replayed or span in replayed for span in scope.spans])
    # Of the median step the median part, as a replay shortens it: where steps differ, other medians speak of other steps.
    mean, median = (
        float(recorded.mean()),
        float(np.median((recorded / np.maximum(1.0, lengths))[seen]) * np.median(lengths[seen])),
    )
    if not median:
        # What few steps have is spread over all of them.
        return TypicalTime(mean, median, float(affected.mean()))
    part = affected.sum() / steps.sum() if contended else np.median(affected / steps)
    return TypicalTime(mean, median, float(part * np.median(steps)))
