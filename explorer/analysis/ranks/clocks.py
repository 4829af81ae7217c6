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

if TYPE_CHECKING:
    import pyarrow as pa

    from explorer.analysis.engine import Engine

MOST_MATCHES = 50_000

_ENDS = f"""
WITH ends AS (
    SELECT match_id, rank, end_ns FROM collectives_matched
    WHERE ranks_seen > 1 AND operation IN ('all_reduce', 'all_gather', 'reduce_scatter', 'all_to_all', 'barrier')
), chosen AS (
    SELECT match_id FROM (SELECT DISTINCT match_id FROM ends)
    QUALIFY row_number() OVER (ORDER BY hash(match_id)) <= {MOST_MATCHES}
)
SELECT match_id, rank, end_ns FROM ends SEMI JOIN chosen USING (match_id) ORDER BY match_id, rank
"""


def compute(engine: Engine) -> pa.Table:
    """One row per rank (columns: `explorer.analysis.computed.RANK_CLOCKS`)."""
    import pyarrow as pa

    hosts = host_of(engine)
    rows = engine.sql(_ENDS).arrow()
    match, rank, end = (rows.column(n).to_numpy().astype(np.int64) for n in ("match_id", "rank", "end_ns"))
    names = sorted(set(hosts.values()), key=lambda name: min(r for r, h in hosts.items() if h == name))
    # Relative times: a float keeps the nanosecond.
    base = int(end.min()) if len(end) else 0
    end = end - base
    host = np.array([names.index(hosts[r]) for r in rank.tolist()], np.int64)
    ends = _host_ends(match, host, end, len(names))
    fits = _spread_out(ends)
    reference = min(hosts)
    within = _within_host(match, host, end, ends)
    out = []
    for one in sorted(hosts):
        fit = fits.get(names.index(hosts[one]))
        out.append(
            {
                "rank": one,
                "host": hosts[one],
                "reference_rank": reference,
                "offset_ns": fit.offset_ns if fit else 0.0,
                "drift_ppb": fit.drift * 1e9 if fit else 0.0,
                "reference_ns": base + fit.reference_ns if fit else base,
                "residual_ns": max(fit.residual_ns, within) if fit and fit.count else None,
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
    shared = known.astype(np.int64).T @ known.astype(np.int64)
    own = int(shared[0, 0])
    fits: dict[int, ClockFit] = {0: ClockFit(0.0, 0.0, 0, 0.0, own)}
    while len(fits) < hosts:
        links = [(shared[a, b], -a, -b) for a in fits for b in range(hosts) if b not in fits and shared[a, b]]
        if not links:
            break
        _, minus_a, minus_b = max(links)
        near, far = -minus_a, -minus_b
        both = known[:, near] & known[:, far]
        time = ends[both, far].astype(np.int64)
        fit = fits[near]
        aligned = _aligned(ends[both, near], fit)
        fits[far] = fit_clock(time, ends[both, far] - aligned)
    return fits


def _aligned(time: np.ndarray, fit: ClockFit) -> np.ndarray:
    return np.asarray(time - fit.offset_ns - fit.drift * (time - fit.reference_ns))
