"""A robust line through the differences of two clocks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MAD_TO_SIGMA = 1.4826
"""A normal distribution's standard deviation is this many times its median absolute deviation."""

FEWEST_FOR_DRIFT = 20
_PAIRS = 20_000
_SEED = 20251


@dataclass(frozen=True, slots=True)
class ClockFit:
    """`difference = offset_ns + drift * (time - reference_ns)`; `residual_ns` is the robust spread around it."""

    offset_ns: float
    drift: float
    reference_ns: int
    residual_ns: float
    count: int


def fit_clock(time_ns: NDArray[np.int64], difference_ns: NDArray[np.float64]) -> ClockFit:
    """Fit offset and drift by the medians of pairwise slopes and of intercepts (Theil 1950, Sen 1968).

    Up to 29 % of the differences may be arbitrarily wrong. Drift is only estimated from at least 20 differences and
    where it explains more than the spread; else the offset is the median.

    Args:
        time_ns: when each difference was seen, on one of the clocks.
        difference_ns: that clock minus the reference. At least one value.
    """
    reference = int(np.median(time_ns))
    relative = (time_ns - reference).astype(np.float64)
    offset = float(np.median(difference_ns))
    flat = MAD_TO_SIGMA * float(np.median(np.abs(difference_ns - offset)))
    constant = ClockFit(offset, 0.0, reference, flat, len(time_ns))
    if len(time_ns) < FEWEST_FOR_DRIFT or np.ptp(relative) <= 0:
        return constant
    slope = _median_slope(relative, difference_ns)
    level = float(np.median(difference_ns - slope * relative))
    spread = MAD_TO_SIGMA * float(np.median(np.abs(difference_ns - level - slope * relative)))
    # A slope fitted to noise lowers the spread a little; a real one by much.
    if abs(slope) * float(np.ptp(relative)) <= 2 * spread:
        return constant
    return ClockFit(level, slope, reference, spread, len(time_ns))


def _median_slope(time: NDArray[np.float64], value: NDArray[np.float64]) -> float:
    count = len(time)
    if count * (count - 1) // 2 <= _PAIRS:
        first, second = np.triu_indices(count, 1)
    else:
        random = np.random.default_rng(_SEED)
        first, second = random.integers(0, count, _PAIRS), random.integers(0, count, _PAIRS)
    run = time[second] - time[first]
    # Close pairs carry more noise than slope.
    far = np.abs(run) >= np.ptp(time) / 10
    return float(np.median((value[second] - value[first])[far] / run[far])) if far.any() else 0.0
