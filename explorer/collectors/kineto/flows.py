"""Flow arrows: pairs of halves by their number, each half bound to the event it starts or lies in."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


def pair_halves(key: Ints, start: Ints, is_source: npt.NDArray[np.bool_]) -> tuple[Ints, Ints]:
    """Positions of the source and target half of every arrow.

    `key` numbers (category, id) pairs. A target takes the last source of its key that is no later, else the key's
    first source; sources without a target and targets without a source make no arrow.
    """
    sources, targets = np.flatnonzero(is_source), np.flatnonzero(~is_source)
    from explorer.collectors.kineto.launches import match_by_number

    found = match_by_number(key[targets], start[targets], key[sources], start[sources])
    good = found >= 0
    return sources[found[good]], targets[good]


def bind(
    track: Ints,
    instant: Ints,
    event_track: npt.NDArray[np.int32],
    event_start: Ints,
    event_duration: Ints,
    depth_order: npt.NDArray[np.int32],
) -> Ints:
    """The event each half belongs to: the innermost one that starts at its instant, else the innermost around it; else -1.

    `depth_order` is a sweep order of the events (enclosing before enclosed).
    """
    result = np.full(len(track), -1, np.int64)
    if not len(track) or not len(event_track):
        return result
    tracks, starts = event_track[depth_order], event_start[depth_order]
    # Position of the last event of the track that starts no later than the instant.
    order = np.argsort(track, kind="stable")
    sorted_tracks = track[order]
    begins = np.flatnonzero(np.append(True, sorted_tracks[1:] != sorted_tracks[:-1]))
    numbers = sorted_tracks[begins].astype(tracks.dtype)
    lows, highs = np.searchsorted(tracks, numbers, "left"), np.searchsorted(tracks, numbers, "right")
    position = np.empty(len(track), np.int64)
    for first, last, low, high in zip(begins, np.append(begins[1:], len(order)), lows, highs):
        mine = order[first:last]
        position[mine] = low + np.searchsorted(starts[low:high], instant[mine], "right") - 1
    alive = position >= 0
    alive[alive] &= tracks[position[alive]] == track[alive]
    # Walk back over events that ended before; arrows start where their event starts, so one or two steps do.
    for _ in range(64):
        if not alive.any():
            break
        here = position[alive]
        ends = starts[here] + event_duration[depth_order[here]]
        around = (ends > instant[alive]) | (starts[here] == instant[alive])
        places = np.flatnonzero(alive)
        result[places[around]] = depth_order[here[around]]
        alive[places[around]] = False
        rest = places[~around]
        position[rest] -= 1
        keep = position[rest] >= 0
        keep[keep] &= tracks[position[rest[keep]]] == track[rest[keep]]
        alive[rest] = keep
    return result
