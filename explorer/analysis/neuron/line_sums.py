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


class LineSums:
    """Lines of a rank's device events. An event of several lines is shared between them."""

    def __init__(self, engine: Engine, rank: int) -> None:
        shared = engine.sql(_SHARED, [rank]).arrow()
        self._shared_events, order = _sorted(shared.column("event_id"))
        self._shared_sites, self._shared_places = _coded(shared.column("site_id"), order)
        self._shares = shared.column("share").to_numpy()[order]
        single = engine.sql(_SINGLE, [rank]).arrow()
        self._events, order = _sorted(single.column("event_id"))
        self._sites, self._places = _coded(single.column("site_id"), order)
        alone = np.ones(len(self._events), np.bool_)
        if len(alone):
            place = np.searchsorted(self._events, self._shared_events).clip(max=len(alone) - 1)
            alone[place[self._events[place] == self._shared_events]] = False
        self._events, self._places = self._events[alone], self._places[alone]

    def by_site(self, events: Ids, weights: npt.NDArray[np.float64]) -> dict[int, float]:
        """Weights summed by site_id; an event may come several times. Events without a line are left out."""
        unique, inverse = np.unique(events, return_inverse=True)
        sums = np.bincount(inverse, weights=weights, minlength=len(unique))
        found: dict[int, float] = {}
        for own, sites, places, shares in (
            (self._events, self._sites, self._places, None),
            (self._shared_events, self._shared_sites, self._shared_places, self._shares),
        ):
            if not len(unique) or not len(own):
                continue
            first, last = np.searchsorted(own, [unique[0], unique[-1] + 1])
            place = np.searchsorted(unique, own[first:last])
            hit = np.flatnonzero(unique[place] == own[first:last])
            weight = sums[place[hit]]
            if shares is not None:
                weight = weight * shares[first:last][hit]
            total = np.bincount(places[first:last][hit], weights=weight, minlength=len(sites))
            for site in np.flatnonzero(total):
                found[int(sites[site])] = found.get(int(sites[site]), 0.0) + float(total[site])
        return found


def _sorted(column: pa.ChunkedArray) -> tuple[Ids, npt.NDArray[np.intp]]:
    values = column.to_numpy()
    order = np.argsort(values, kind="stable")
    return values[order], order


def _coded(column: pa.ChunkedArray, order: npt.NDArray[np.intp]) -> tuple[Ids, npt.NDArray[np.int32]]:
    """Distinct sites, and the place of each row's site in them."""
    words = column.combine_chunks().dictionary_encode()
    return words.dictionary.to_numpy(), words.indices.to_numpy()[order]
