"""Clock offset and drift of every rank, from the ends of communication that its ranks end together.

All-reduce, all-gather, reduce-scatter, all-to-all and barriers end on all ranks at nearly one time, whatever the ranks'
arrivals; the difference of recorded ends is the difference of the clocks. Ranks of one host share a clock, so hosts are
fitted, each against the host nearest to the reference with which it shares most communication.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from explorer.analysis.ranks.clock_fit import ClockFit, fit_clock
from explorer.analysis.ranks.query import query

if TYPE_CHECKING:
    import pyarrow as pa

    from explorer.analysis.engine import Engine

MOST_MATCHES = 50_000
CLOCK_STEP_NS = 1_000.0
"""How finely processes of one host are taken to agree where no call that ends on them together says so."""

_MOST_CELLS = 8_000_000
"""Matches times hosts, which are held as a matrix."""


def compute(engine: Engine) -> pa.Table:
    """One row per rank (columns: `explorer.analysis.computed.RANK_CLOCKS`)."""
    import pyarrow as pa

    hosts = host_of(engine)
    # In the order of their first ranks.
    names = list(dict.fromkeys(hosts[rank] for rank in sorted(hosts)))
    most = min(MOST_MATCHES, max(1, _MOST_CELLS // len(names)))
    rows = engine.sql(query("clock_ends"), {"most": most}).arrow()
    match, rank, end = (rows.column(n).to_numpy().astype(np.int64) for n in ("match_id", "rank", "end_ns"))
    # Relative times: a float keeps the nanosecond.
    base = int(end.min()) if len(end) else 0
    end = end - base
    number = {name: place for place, name in enumerate(names)}
    host_of_rank = np.zeros(max(hosts) + 1, np.int64)
    for one, name in hosts.items():
        host_of_rank[one] = number[name]
    host = host_of_rank[rank]
    ends = _host_ends(match, host, end, len(names))
    fits = _spread_out(ends)
    reference = min(hosts)
    within = _within_host(match, host, end, ends)
    shared_clock = sum(name == hosts[reference] for name in hosts.values()) > 1
    out = []
    for one in sorted(hosts):
        fit = fits.get(number[hosts[one]])
        residual: float | None = None
        if fit and fit.count:
            residual = max(fit.residual_ns, within)
        elif shared_clock and hosts[one] == hosts[reference]:
            residual = CLOCK_STEP_NS
        out.append(
            {
                "rank": one,
                "host": hosts[one],
                "reference_rank": reference,
                "offset_ns": fit.offset_ns if fit else 0.0,
                "drift_ppb": fit.drift * 1e9 if fit else 0.0,
                "reference_ns": base + fit.reference_ns if fit else base,
                "residual_ns": residual,
                "matched": fit.count if fit else 0,
            }
        )
    return pa.Table.from_pylist(out)


def host_of(engine: Engine) -> dict[int, str]:
    """The host of each rank; a rank whose host is unknown is a host of its own."""
    hosts: dict[int, str] = {}
    for rank, manifest in engine.reader.manifests.items():
        name = next(
            (
                str(manifest.host[key])
                for key in ("hostname", "host", "name", "node")
                if manifest.host.get(key)
            ),
            None,
        )
        # An imported file says nothing about the host it came from; the importing machine's name is not it.
        hosts[rank] = name if name and manifest.made_by == "capture" else f"rank {rank}"
    return hosts


def _host_ends(match: np.ndarray, host: np.ndarray, end: np.ndarray, hosts: int) -> np.ndarray:
    """Rows of matches, columns of hosts: the median end on each host in ns, NaN where it took no part."""
    numbers, row = np.unique(match, return_inverse=True)
    table = np.full((len(numbers), hosts), np.nan)
    if not len(match):
        return table
    order = np.lexsort((end, host, row))
    row, host, end = row[order], host[order], end[order]
    first = np.flatnonzero(np.append(True, (row[1:] != row[:-1]) | (host[1:] != host[:-1])))
    size = np.diff(np.append(first, len(row)))
    middle = first + (size - 1) // 2
    table[row[first], host[first]] = end[middle]
    return table


def _within_host(match: np.ndarray, host: np.ndarray, end: np.ndarray, ends: np.ndarray) -> float:
    """Spread of the ends of one match on one host around their median: what ends together means here."""
    if not len(match):
        return 0.0
    _, row = np.unique(match, return_inverse=True)
    deviation = np.abs(end - ends[row, host])
    shared = deviation[deviation > 0]
    return float(1.4826 * np.median(shared)) if len(shared) else 0.0


def _spread_out(ends: np.ndarray) -> Mapping[int, ClockFit]:
    """Fit each host against one already fitted, from host 0 outwards along the most shared communication."""
    hosts = ends.shape[1]
    known = ~np.isnan(ends)
    counts = known.astype(np.float32)
    shared = (counts.T @ counts).astype(np.int64)
    fits: dict[int, ClockFit] = {0: ClockFit(0.0, 0.0, 0, 0.0, int(shared[0, 0]))}
    # Of each host: the most it shares with a fitted one, and the first such host.
    most, near_of = shared[0].copy(), np.zeros(hosts, np.int64)
    most[0] = 0
    while len(fits) < hosts and most.any():
        best = np.flatnonzero(most == most.max())
        far = int(best[np.lexsort((best, near_of[best]))[0]])
        near = int(near_of[far])
        both = known[:, near] & known[:, far]
        time = ends[both, far].astype(np.int64)
        aligned = _aligned(ends[both, near], fits[near])
        fits[far] = fit_clock(time, ends[both, far] - aligned)
        closer = (shared[far] > most) | ((shared[far] == most) & (far < near_of))
        near_of[closer], most[closer] = far, shared[far][closer]
        most[list(fits)] = 0
    return fits


def _aligned(time: np.ndarray, fit: ClockFit) -> np.ndarray:
    return np.asarray(time - fit.offset_ns - fit.drift * (time - fit.reference_ns))
