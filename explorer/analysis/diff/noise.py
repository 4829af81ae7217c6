"""Is a change of the step time more than noise? A bootstrap over the steps of both runs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FEWEST_STEPS = 5
"""With fewer complete steps on either side no verdict is given."""

SMALLEST_CHANGE = 0.01
"""A change of the median below 1 % counts as none: two runs of one program differ by that."""

RESAMPLES = 2000
CONFIDENCE = 0.95
_SEED = 20251


@dataclass(frozen=True, slots=True)
class Verdict:
    """`answer` is slower, faster, no_significant_change or undecided (too few steps).

    `change` is (after - before) / before of the median step, None where a run has no complete step; `low` and `high` are its
    95 % interval, None where it is undecided.
    """

    answer: str
    change: float | None
    low: float | None
    high: float | None
    steps_before: int
    steps_after: int

    @property
    def reason(self) -> str:
        """Why it is undecided."""
        without = [
            name for name, steps in (("before", self.steps_before), ("after", self.steps_after)) if not steps
        ]
        if without:
            where = "either run" if len(without) == 2 else f"the run {without[0]}"
            return f"no complete step in {where} to compare"
        return f"fewer than {FEWEST_STEPS} complete steps on one side"

    @property
    def change_text(self) -> str:
        """The change as a signed percentage; empty where there is none."""
        return "" if self.change is None else f"{self.change:+.1%}"

    @property
    def basis_text(self) -> str:
        """What it rests on: the interval, where there is one, and the steps."""
        steps = f"{self.steps_before} and {self.steps_after} steps"
        if self.low is None or self.high is None:
            return steps
        return f"95 % interval {self.low:+.1%} to {self.high:+.1%}, {steps}"


def verdict(before_ns: NDArray[np.int64], after_ns: NDArray[np.int64]) -> Verdict:
    """Compare step times by the percentile interval of a moving-block bootstrap of the medians' ratio.

    Blocks of about the cube root of the number of steps keep slow drift inside a run from passing as certainty
    (Künsch 1989). The same input always gives the same answer.
    """
    change = (
        float(_ratio(np.median(before_ns), np.median(after_ns))) if len(before_ns) and len(after_ns) else None
    )
    if change is None or min(len(before_ns), len(after_ns)) < FEWEST_STEPS:
        return Verdict("undecided", change, None, None, len(before_ns), len(after_ns))
    random = np.random.default_rng(_SEED)
    ratios = _ratio(_medians(before_ns, random), _medians(after_ns, random))
    tail = (1 - CONFIDENCE) / 2
    low, high = (float(x) for x in np.quantile(ratios, [tail, 1 - tail]))
    if low > 0 and change >= SMALLEST_CHANGE:
        answer = "slower"
    elif high < 0 and change <= -SMALLEST_CHANGE:
        answer = "faster"
    else:
        answer = "no_significant_change"
    return Verdict(answer, change, low, high, len(before_ns), len(after_ns))


def _ratio(before: object, after: object) -> NDArray[np.float64]:
    before_, after_ = np.asarray(before, np.float64), np.asarray(after, np.float64)
    return (after_ - before_) / np.maximum(before_, 1.0)


def _medians(values: NDArray[np.int64], random: np.random.Generator) -> NDArray[np.float64]:
    count = len(values)
    block = max(1, round(count ** (1 / 3)))
    blocks = -(-count // block)
    starts = random.integers(0, count - block + 1, size=(RESAMPLES, blocks))
    rows = (starts[:, :, None] + np.arange(block)).reshape(RESAMPLES, -1)[:, :count]
    return np.asarray(np.median(values[rows], axis=1), np.float64)
