"""Everything known about one event, for drilling down from a finding."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from explorer.model.errors import UsageError

if TYPE_CHECKING:
    from explorer.analysis.run import Run

_SHORT = "rank || ':' || event_id AS id, category, name, start_ns, duration_ns"
_ID = re.compile(r"([0-9]{1,9}):([0-9]{1,18})")


def parse_id(text: str) -> tuple[int, int]:
    """Rank and event id of '<rank>:<event_id>'. Raises UsageError."""
    if not (match := _ID.fullmatch(text)):
        raise UsageError(f"'{text}' is not an event.", "Write RANK:EVENT_ID, such as 0:1234.")
    return int(match[1]), int(match[2])


def event_facts(run: Run, text: str) -> dict[str, Any]:
    """The event's row (without nulls), its lines, its call chain, its op, its launch, and the work it enqueued.

    Raises UsageError when there is no such event.
    """
    rank, number = parse_id(text)
    engine = run.engine
    found = engine.sql(
        "SELECT e.*, t.label AS track FROM events AS e LEFT JOIN tracks AS t USING (rank, track_id)"
        " WHERE e.rank = ? AND e.event_id = ?",
        [rank, number],
    ).rows()
    if not found:
        raise UsageError(f"There is no event '{text}' in this run.")
    row = found[0]
    if row.get("attributes"):
        row["attributes"] = _parsed(row["attributes"])
    chain = engine.sql(
        "SELECT s.file, s.line, s.function, s.code FROM stacks AS k JOIN sites AS s USING (site_id)"
        " WHERE k.stack_id = ? ORDER BY k.depth",
        [row["stack_id"]],
    ).rows()
    lines = engine.sql(
        "SELECT s.file, s.line, s.function, s.code, l.share FROM event_lines AS l JOIN sites AS s USING (site_id)"
        " WHERE l.rank = ? AND l.event_id = ? ORDER BY l.share DESC",
        [rank, number],
    ).rows()
    return {
        "event": {"id": text, **{key: value for key, value in row.items() if value is not None}},
        "lines": lines,
        "stack": chain,
        "op": _one(run, rank, row["op_id"]),
        "launch": _one(run, rank, row["launch_id"]),
        "forward": _one(run, rank, row["forward_id"]),
        "enqueued": engine.sql(
            f"SELECT {_SHORT} FROM events WHERE rank = ? AND (launch_id = ? OR op_id = ?) AND event_id <> ?"
            " ORDER BY start_ns LIMIT 20",
            [rank, number, number, number],
        ).rows(),
    }


def neighbour_rows(run: Run, text: str) -> list[dict[str, Any]]:
    """Events around one, each with `relation`: parent, child, before, after, or the kind of an edge with its direction."""
    rank, number = parse_id(text)
    event_facts(run, text)
    return run.engine.sql(
        f"""
        WITH own AS (SELECT * FROM events WHERE rank = $rank AND event_id = $number)
        SELECT * FROM (
            SELECT 'parent' AS relation, 0 AS place, {_SHORT} FROM events
            WHERE rank = $rank AND event_id = (SELECT parent_id FROM own)
            UNION ALL
            SELECT 'child', 1, {_SHORT} FROM events WHERE rank = $rank AND parent_id = $number
            UNION ALL
            (SELECT 'before', 2, {_SHORT} FROM events
             WHERE rank = $rank AND track_id = (SELECT track_id FROM own) AND start_ns + duration_ns <= (SELECT start_ns FROM own)
               AND parent_id IS NOT DISTINCT FROM (SELECT parent_id FROM own) AND event_id <> $number
             ORDER BY start_ns + duration_ns DESC, event_id LIMIT 3)
            UNION ALL
            (SELECT 'after', 3, {_SHORT} FROM events
             WHERE rank = $rank AND track_id = (SELECT track_id FROM own) AND start_ns >= (SELECT start_ns + duration_ns FROM own)
               AND parent_id IS NOT DISTINCT FROM (SELECT parent_id FROM own) AND event_id <> $number
             ORDER BY start_ns, event_id LIMIT 3)
            UNION ALL
            SELECT 'from ' || g.kind, 4, e.rank || ':' || e.event_id, e.category, e.name, e.start_ns, e.duration_ns
            FROM edges AS g JOIN events AS e ON e.rank = g.rank AND e.event_id = g.source_id
            WHERE g.target_rank = $rank AND g.target_id = $number
            UNION ALL
            SELECT 'to ' || g.kind, 5, e.rank || ':' || e.event_id, e.category, e.name, e.start_ns, e.duration_ns
            FROM edges AS g JOIN events AS e ON e.rank = g.target_rank AND e.event_id = g.target_id
            WHERE g.rank = $rank AND g.source_id = $number
        ) ORDER BY place, start_ns, id
        """,
        {"rank": rank, "number": number},
    ).rows()


def _one(run: Run, rank: int, number: int | None) -> dict[str, Any] | None:
    if number is None:
        return None
    rows = run.engine.sql(
        f"SELECT {_SHORT} FROM events WHERE rank = ? AND event_id = ?", [rank, number]
    ).rows()
    return rows[0] if rows else None


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
