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

    `change` is (after - before) / before of the median step; `low` and `high` its 95 % interval.
    """

    answer: str
    change: float
    low: float
    high: float
    steps_before: int
    steps_after: int


def verdict(before_ns: NDArray[np.int64], after_ns: NDArray[np.int64]) -> Verdict:
    """Compare step times by the percentile interval of a moving-block bootstrap of the medians' ratio.

    Blocks of about the cube root of the number of steps keep slow drift inside a run from passing as certainty
    (Künsch 1989). The same input always gives the same answer.
    """
    change = (
        float(_ratio(np.median(before_ns), np.median(after_ns))) if len(before_ns) and len(after_ns) else 0.0
    )
    if min(len(before_ns), len(after_ns)) < FEWEST_STEPS:
        return Verdict("undecided", change, change, change, len(before_ns), len(after_ns))
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
