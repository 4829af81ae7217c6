"""Device events by their place among all device events of a rank: most events of a run are the host's, and what is kept for
each device event need not be kept for those."""

from __future__ import annotations

import numpy as np

from explorer.analysis.critical_path.host_lane import Ints
from explorer.analysis.critical_path.rank_events import RankEvents


def places(events: RankEvents, event: Ints) -> Ints:
    """Places in `events.device` of events by index; -1 for what is no device work."""
    if not len(events.device):
        return np.full(len(event), -1, np.int64)
    # Both are sorted: indices are by start, as device work is.
    slot = np.minimum(np.searchsorted(events.device, event), len(events.device) - 1)
    return np.where(events.device[slot] == event, slot, -1)


def stream_predecessors(events: RankEvents) -> Ints:
    """For each device event the place of the one before it on its stream, by start; -1 for the first."""
    before = np.full(len(events.device), -1, np.int64)
    track = events.track[events.device]
    order = np.argsort(track, kind="stable")
    same = track[order[1:]] == track[order[:-1]]
    before[order[1:][same]] = order[:-1][same]
    return before
