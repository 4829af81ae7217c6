"""The run's clock: what has to be added to a trace's times to make them Unix epoch nanoseconds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

EPOCH_FLOOR_NS = 946_684_800_000_000_000
"""The year 2000. No machine's uptime reaches it, so larger times are epoch times."""
_INT64 = 1 << 63


@dataclass(frozen=True, slots=True)
class Clock:
    """`base_ns` is to be added; `kind` is base (the trace named its base), epoch (its times are epoch) or relative."""

    base_ns: int
    kind: str


def find_clock(top_level: dict[str, Any], first_ns: int | None) -> Clock:
    """From `baseTimeNanoseconds` and the earliest time as recorded."""
    base = top_level.get("baseTimeNanoseconds")
    if isinstance(base, str) and base.strip().isdigit():
        base = int(base)
    if first_ns is not None and first_ns >= EPOCH_FLOOR_NS:
        return Clock(0, "epoch")
    if isinstance(base, int) and not isinstance(base, bool) and base > 0 and base + (first_ns or 0) < _INT64:
        return Clock(base, "base")
    return Clock(0, "relative")
