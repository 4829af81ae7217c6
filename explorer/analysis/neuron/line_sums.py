"""Sums of any weight of device events by source line: as a join with event_lines, in arrays, for many questions at once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from explorer.analysis.engine import Engine

Ids = npt.NDArray[np.int64]

_SINGLE = """
SELECT event_id, site_id FROM events
WHERE rank = $1 AND category IN ('instruction', 'dma', 'collective') AND site_id IS NOT NULL"""
_SHARED = "SELECT event_id, site_id, share FROM event_sites WHERE rank = $1 AND role = 'responsible'"


_NONE = np.int32(-1)
MOST_EMPTY = 8
"""Event ids are looked up in a table of their whole range while that has at most this many places per event."""


class LineSums:
    """Lines of a rank's device events. An event of several lines is shared between them.

    Each event has a code: the place of its line in `sites`, or -2 - n where its lines are the rows of the shared table from
    row n on.
    """

    def __init__(self, engine: Engine, rank: int) -> None:
        shared = engine.sql(_SHARED, [rank]).arrow()
        single = engine.sql(_SINGLE, [rank]).arrow()
        words = pa.chunked_array(
            [*shared.column("site_id").chunks, *single.column("site_id").chunks], pa.int64()
        ).combine_chunks()
        coded = words.dictionary_encode()
        self.sites = coded.dictionary.to_numpy()
        """Every line, in the order that `expand` counts them"""
        places = coded.indices.to_numpy()
        events = shared.column("event_id").to_numpy()
        order = np.argsort(events, kind="stable")
        events = events[order]
        self._places, self._shares = (
            places[: shared.num_rows][order],
            shared.column("share").to_numpy()[order],
        )
        first = np.flatnonzero(np.diff(events, prepend=events[:1] - 1))
        # For the first row of each event in the shared table, how many it has.
        self._rows = np.zeros(len(events), np.int32)
        self._rows[first] = np.diff(first, append=len(events))
        # What event_sites knows goes before the event's own line.
        ids = np.r_[single.column("event_id").to_numpy(), events[first]]
        codes = np.r_[places[shared.num_rows :], -2 - first].astype(np.int32)
        self._low = int(ids.min()) if len(ids) else 0
        span = int(ids.max()) - self._low + 1 if len(ids) else 0
        self._ids: Ids | None = None
        if span <= MOST_EMPTY * len(ids):
            self._codes = np.full(span, _NONE)
            self._codes[ids - self._low] = codes
        else:
            order = np.argsort(ids, kind="stable")
            last = np.r_[np.diff(ids[order]) > 0, True]
            self._ids, self._codes = ids[order][last], codes[order][last]

    def by_site(self, events: Ids, weights: npt.NDArray[np.float64]) -> dict[int, float]:
        """Weights summed by site_id; an event may come several times. Events without a line are left out."""
        row, place, share = self.expand(events)
        total = np.bincount(place, weights=weights[row] * share, minlength=len(self.sites))
        return {int(self.sites[site]): float(total[site]) for site in np.flatnonzero(total)}

    def expand(self, events: Ids) -> tuple[Ids, Ids, npt.NDArray[np.float64]]:
        """The join of events with their lines: (place in `events`, place in `sites`, share) of every pair."""
        codes = self._code(events)
        alone, several = np.flatnonzero(codes >= 0), np.flatnonzero(codes < _NONE)
        first = -2 - codes[several]
        many = self._rows[first]
        # The n-th line of an event lies n rows behind its first.
        nth = np.arange(many.sum()) - np.repeat(np.cumsum(many) - many, many)
        pair = np.repeat(first, many) + nth
        return (
            np.r_[np.repeat(several, many), alone],
            np.r_[self._places[pair], codes[alone]].astype(np.int64),
            np.r_[self._shares[pair], np.ones(len(alone))],
        )

    def _code(self, events: Ids) -> npt.NDArray[np.int32]:
        if not len(self._codes):
            return np.full(len(events), _NONE)
        place = events - self._low if self._ids is None else np.searchsorted(self._ids, events)
        inside = (place >= 0) & (place < len(self._codes))
        place = np.where(inside, place, 0)
        if self._ids is not None:
            inside &= self._ids[place] == events
        return np.where(inside, self._codes[place], _NONE)
