"""Pieces of SQL that several rules share."""

from __future__ import annotations


def union_ns(source: str) -> str:
    """SQL for one row (union_ns): the length of the union of rows (start_ns, duration_ns), overlaps counted once."""
    return f"""SELECT coalesce(sum(greatest(0, end_ns - greatest(start_ns, coalesce(reached_ns, start_ns)))), 0)::BIGINT AS union_ns
FROM (SELECT start_ns, start_ns + duration_ns AS end_ns, max(start_ns + duration_ns) OVER (
  ORDER BY start_ns, duration_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS reached_ns
  FROM ({source}))"""


def time_outside(source: str, other: str) -> str:
    """SQL for the time covered by rows (start_ns, duration_ns) of `source` and by none of `other`, as such rows.

    Of `other`, often a hundred times as many, only what touches a row of `source` is cut up with it.
    """
    touching = f"""SELECT o.start_ns, o.duration_ns FROM ({other}) o ASOF JOIN (
      SELECT start_ns, max(start_ns + duration_ns) OVER (ORDER BY start_ns) AS reached_ns FROM ({source})) s
    ON o.start_ns + o.duration_ns > s.start_ns WHERE s.reached_ns > o.start_ns"""
    return f"""SELECT start_ns, end_ns - start_ns AS duration_ns FROM (
  SELECT edge_ns AS start_ns, lead(edge_ns) OVER (ORDER BY edge_ns) AS end_ns, sum(mine) OVER w AS mine, sum(theirs) OVER w AS theirs FROM (
    SELECT edge_ns, sum(mine) AS mine, sum(theirs) AS theirs FROM (
      SELECT unnest([start_ns, start_ns + duration_ns]) AS edge_ns, unnest([1, -1]) AS mine, 0 AS theirs FROM ({source})
      UNION ALL
      SELECT unnest([start_ns, start_ns + duration_ns]), 0, unnest([1, -1]) FROM ({touching}))
    GROUP BY edge_ns)
  WINDOW w AS (ORDER BY edge_ns)) WHERE mine > 0 AND theirs = 0 AND end_ns > start_ns"""


def states_at(rank: int, track_id: int, steps: str, condition: str) -> str:
    """SQL for the host states of a thread inside the steps in scope that meet a condition on `h`.

    `steps` is the scope's condition on a table aliased `s`; states are clipped to their step.
    """
    if " AND s.step" not in steps:
        return f"""SELECT h.start_ns, h.duration_ns, h.site_id FROM host_states h
WHERE h.rank = {rank} AND h.track_id = {track_id} AND {condition}"""
    return f"""SELECT greatest(h.start_ns, s.start_ns) AS start_ns,
  least(h.start_ns + h.duration_ns, s.start_ns + s.duration_ns) - greatest(h.start_ns, s.start_ns) AS duration_ns, h.site_id
FROM host_states h JOIN steps s ON s.rank = h.rank AND h.start_ns < s.start_ns + s.duration_ns
  AND h.start_ns + h.duration_ns > s.start_ns
WHERE h.track_id = {track_id} AND {steps} AND {condition}"""
