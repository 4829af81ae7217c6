"""The gaps of each compute engine of a profile, with the instruction behind each and what ended last within it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from explorer.analysis.neuron.lanes import COLLECTIVE, DMA, NO_ID, SPILL, CoreLanes
from explorer.model.neuron_engines import COMPUTE_ENGINES, ENGINES

SHORT_NS = 100
"""An instruction's fixed cost is about 60 to 100 cycles near 1 GHz (public NKI guides): shorter gaps are that."""

OTHERS = (*ENGINES, DMA, SPILL, COLLECTIVE)
"""Lanes whose end may be what a gap waited for."""

Times = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int8]


@dataclass(frozen=True)
class Gaps:
    """Gaps of one profile, column by column. `first_id` is the instruction behind each (NO_ID: none is known); `lane` the place
    in OTHERS of the lane that ended last within it (-1: none)."""

    core: npt.NDArray[np.int32]
    engine: Codes
    start: Times
    end: Times
    first_id: Times
    is_first: npt.NDArray[np.bool_]
    is_last: npt.NDArray[np.bool_]
    lane: Codes

    @property
    def explained(self) -> npt.NDArray[np.bool_]:
        """Gaps long enough to ask why, and with an instruction behind them."""
        return (self.end - self.start >= SHORT_NS) & ~self.is_last


def gaps_of(cores: list[CoreLanes], window: tuple[int, int]) -> Gaps:
    """Every gap of every compute engine that worked at all."""
    parts: list[Gaps] = []
    for core in cores:
        for name in COMPUTE_ENGINES:
            busy = core.lane(name)
            if not len(busy.start_ns):
                continue
            start = np.r_[window[0], busy.end_ns]
            end = np.r_[busy.start_ns, window[1]]
            place = np.arange(len(start))
            keep = end > start
            start, end = start[keep], end[keep]
            count = len(start)
            parts.append(
                Gaps(
                    np.full(count, core.core, np.int32),
                    np.full(count, ENGINES.index(name), np.int8),
                    start,
                    end,
                    np.r_[core.firsts[name], NO_ID][keep],
                    (place == 0)[keep],
                    (place == len(place) - 1)[keep],
                    _coincidence(core, name, start, end),
                )
            )
    return Gaps(
        *(
            np.concatenate([getattr(part, name) for part in parts])
            if parts
            else np.zeros(0, np.bool_ if name.startswith("is_") else np.int64)
            for name in Gaps.__dataclass_fields__
        )
    )


def _coincidence(core: CoreLanes, name: str, start: Times, end: Times) -> Codes:
    """Place in OTHERS of the lane that ended last inside each gap; -1: none."""
    best = np.full(len(start), -1, np.int8)
    latest = start.copy()
    for number, other in enumerate(OTHERS):
        ends = core.lane(other).end_ns
        if other == name or not len(ends):
            continue
        place = np.searchsorted(ends, end, side="right") - 1
        last = np.where(place >= 0, ends[np.maximum(place, 0)], 0)
        # Of lanes that end at one moment the later in the list wins: spill over DMA, collective over both.
        wins = (place >= 0) & (last > start) & (last >= latest)
        best[wins] = number
        latest[wins] = last[wins]
    return best
