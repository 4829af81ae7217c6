"""Everything known about one event: its place, its line, what launched it, what it launched, what encloses it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from explorer.analysis.run import Run


@dataclass(frozen=True)
class EventDetails:
    """One event with its neighbours.

    `event` holds its columns plus `file`, `line`, `function`, `code`, `track` (label), `module` (path), `op_name` and
    `parent_name`; `launch` the host event that enqueued it and `launched` the device events it enqueued (event_id,
    name, start_ns, duration_ns, track_id), at most a hundred; `delay_ns` the time from the end of the launching call
    to its start; `lines` further source lines of an event that has several (file, line, code, role, share).
    """

    event: dict[str, Any]
    launch: dict[str, Any] | None
    launched: list[dict[str, Any]]
    lines: list[dict[str, Any]]
    delay_ns: int | None
    attributes: dict[str, Any]


def event_details(run: Run, rank: int, event_id: int) -> EventDetails | None:
    """Details of an event; None where the run has no such event."""
    engine = run.engine
    rows = engine.sql(
        """
        SELECT e.*, s.file, s.line, s.function, s.code, t.label AS track, m.path AS module, o.name AS op_name,
               p.name AS parent_name
        FROM (SELECT * FROM events WHERE rank = ? AND event_id = ?) AS e
        LEFT JOIN sites AS s USING (site_id)
        LEFT JOIN tracks AS t ON t.rank = e.rank AND t.track_id = e.track_id
        LEFT JOIN modules AS m ON m.module_id = e.module_id
        LEFT JOIN (SELECT rank, event_id, name FROM events WHERE rank = ?) AS o ON o.event_id = e.op_id
        LEFT JOIN (SELECT rank, event_id, name FROM events WHERE rank = ?) AS p ON p.event_id = e.parent_id
        """,
        [rank, event_id, rank, rank],
    ).rows()
    if not rows:
        return None
    event = rows[0]
    brief = "SELECT event_id, name, start_ns, duration_ns, track_id FROM events WHERE rank = ?"
    launch = None
    if event["launch_id"] is not None:
        launch = next(iter(engine.sql(f"{brief} AND event_id = ?", [rank, event["launch_id"]]).rows()), None)
    launched = engine.sql(f"{brief} AND launch_id = ? ORDER BY start_ns LIMIT 100", [rank, event_id]).rows()
    if not launched:
        # An op launches through the runtime calls it encloses: show the work it is responsible for.
        launched = engine.sql(
            f"{brief} AND op_id = ? AND launch_id IS NOT NULL ORDER BY start_ns LIMIT 100", [rank, event_id]
        ).rows()
    lines = engine.sql(
        "SELECT s.file, s.line, s.code, x.role, x.share FROM event_sites AS x JOIN sites AS s USING (site_id)"
        " WHERE x.rank = ? AND x.event_id = ? ORDER BY x.share DESC",
        [rank, event_id],
    ).rows()
    delay = None
    if launch is not None:
        delay = max(0, event["start_ns"] - launch["start_ns"] - launch["duration_ns"])
    try:
        attributes = json.loads(event["attributes"]) if event["attributes"] else {}
    except ValueError:
        attributes = {"attributes": event["attributes"]}
    return EventDetails(
        event,
        launch,
        launched,
        lines,
        delay,
        attributes if isinstance(attributes, dict) else {"value": attributes},
    )
