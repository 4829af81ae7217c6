"""Stretches of device time in which only one kind of work runs."""

from __future__ import annotations

from explorer.analysis.rule_context import RuleContext

OTHER_WORK = ("kernel", "copy", "fill", "collective")


def devices(context: RuleContext, category: str) -> list[tuple[str, str]]:
    """(name, SQL condition on tracks `t`) of each device that has events of a category, the busiest first."""
    rows = context.rows(
        f"""SELECT t.device_type, t.device_index, sum(e.duration_ns) AS time_ns
        FROM events e JOIN tracks t ON t.rank = e.rank AND t.track_id = e.track_id
        WHERE {context.where()} AND e.category = '{category}' AND t.kind <> 'thread'
        GROUP BY ALL ORDER BY time_ns DESC, device_index"""
    )
    found = []
    for row in rows:
        index = row["device_index"]
        same = f"t.device_type IS NOT DISTINCT FROM '{row['device_type']}' AND t.device_index IS NOT DISTINCT FROM {'NULL' if index is None else index}"
        found.append(
            (f"{row['device_type']}:{index}" if index is not None else str(row["device_type"]), same)
        )
    return found


def chosen_events(context: RuleContext, same: str, category: str) -> str:
    """SQL for the device events of a category: event_id, start_ns, duration_ns, site_id, name, size_bytes, track_id."""
    return f"""SELECT e.event_id, e.start_ns, e.duration_ns, e.site_id, e.name, e.size_bytes, e.track_id
FROM events e JOIN tracks t ON t.rank = e.rank AND t.track_id = e.track_id
WHERE {context.where()} AND t.kind <> 'thread' AND {same} AND e.category = '{category}'"""


def exposed(context: RuleContext, same: str, category: str) -> str:
    """SQL for the stretches (start_ns, duration_ns) in which events of the category run on a device and nothing else does.

    A sweep over starts and ends: a stretch is exposed while at least one chosen event and no other work runs. (A running sum
    holds all that begins or ends at one time; of those rows only the last has a stretch after it.)
    """
    work = f"""SELECT e.start_ns, e.duration_ns, (e.category = '{category}')::INT AS chosen
FROM events e JOIN tracks t ON t.rank = e.rank AND t.track_id = e.track_id
WHERE {context.where()} AND t.kind <> 'thread' AND {same} AND {context.in_texts("e.category", OTHER_WORK)}"""
    return f"""SELECT at_ns AS start_ns, next_ns - at_ns AS duration_ns FROM (
  SELECT at_ns, lead(at_ns) OVER (ORDER BY at_ns) AS next_ns,
    sum(chosen) OVER (ORDER BY at_ns) AS running, sum(other) OVER (ORDER BY at_ns) AS others
  FROM (
    SELECT start_ns AS at_ns, chosen, 1 - chosen AS other FROM ({work})
    UNION ALL SELECT start_ns + duration_ns, -chosen, chosen - 1 FROM ({work}))
) WHERE running > 0 AND others = 0 AND next_ns > at_ns"""
