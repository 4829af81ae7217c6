"""Whether a profile's `_percent` columns hold fractions (0 to 1) or percent (0 to 100): told by its own numbers.

The reference gives their unit as percent, while files seen in public hold fractions. Summary carries the same quantity
twice: `<x>_active_time` with `total_time`, and `<x>_active_time_percent`; their ratio decides for the whole profile.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

FRACTION, PERCENT, UNKNOWN = "fraction", "percent", "unknown"
_TOLERANCE = 0.02


def percent_kind(summary: Mapping[str, Any]) -> str:
    """'fraction', 'percent', or 'unknown' where no pair of columns decides (or pairs contradict each other)."""
    total = summary.get("total_time")
    votes = set()
    if isinstance(total, int | float) and total > 0:
        for name, value in summary.items():
            if not name.endswith("_active_time_percent") or not isinstance(value, int | float) or value <= 0:
                continue
            seconds = summary.get(name.removesuffix("_percent"))
            if not isinstance(seconds, int | float) or seconds <= 0:
                continue
            ratio = value / (seconds / total)
            if abs(ratio - 1) <= _TOLERANCE:
                votes.add(FRACTION)
            elif abs(ratio / 100 - 1) <= _TOLERANCE:
                votes.add(PERCENT)
    return votes.pop() if len(votes) == 1 else UNKNOWN
