"""The rows of a run as trace viewers want them: events with their line, tracks, arrows and counters of a window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from explorer.model.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

    from explorer.analysis.run import Run


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of a run in epoch nanoseconds; None: open."""

    start_ns: int | None = None
    end_ns: int | None = None


WHOLE = Window()


def step_window(run: Run, step: int) -> Window:
    """From the first start to the last end of a step over all ranks. Raises UsageError where the run has no such step."""
    row = run.engine.sql(
        "SELECT min(start_ns) AS first, max(start_ns + duration_ns) AS last FROM steps WHERE step = ?", [step]
    ).rows()[0]
    if row["first"] is None:
        known = run.engine.sql("SELECT min(step) AS low, max(step) AS high FROM steps").rows()[0]
        has = (
            "It has no steps." if known["low"] is None else f"It has steps {known['low']} to {known['high']}."
        )
        raise UsageError(f"The run has no step {step}.", has)
    return Window(row["first"], row["last"])


def begin_ns(run: Run) -> int:
    """Start of the earliest event or counter value; 0 for an empty run."""
    row = run.engine.sql(
        "SELECT least((SELECT min(start_ns) FROM events), (SELECT min(timestamp_ns) FROM counters)) AS first"
    ).rows()[0]
    return int(row["first"] or 0)


def _overlap(window: Window, start: str, end: str) -> tuple[str, list[Any]]:
    parts, values = ["true"], []
    if window.start_ns is not None:
        parts.append(f"({end} > ? OR ({end} = {start} AND {start} >= ?))")
        values += [window.start_ns, window.start_ns]
    if window.end_ns is not None:
        parts.append(f"{start} < ?")
        values.append(window.end_ns)
    return " AND ".join(parts), values


def event_rows(run: Run, window: Window) -> pa.Table:
    """Events that touch the window, by rank and track, in order of start with longer ones first."""
    condition, values = _overlap(window, "e.start_ns", "e.start_ns + e.duration_ns")
    return run.engine.sql(
        f"""SELECT e.rank, e.event_id, e.track_id, e.category, e.name, e.start_ns, e.duration_ns, e.step, e.phase,
                   e.correlation_id, e.attribution, e.precision, e.flops, e.size_bytes, e.shapes, e.dtypes, e.attributes,
                   s.file, s.line, s.function, s.code, o.name AS op, m.path AS module, m.class_name AS module_class
            FROM events AS e
            LEFT JOIN sites AS s ON s.site_id = e.site_id
            LEFT JOIN modules AS m ON m.module_id = e.module_id
            LEFT JOIN events AS o ON o.rank = e.rank AND o.event_id = e.op_id
            WHERE {condition}
            ORDER BY e.rank, e.track_id, e.start_ns, e.duration_ns DESC, e.event_id""",
        values,
    ).arrow()


def arrow_rows(run: Run, window: Window) -> pa.Table:
    """Edges between two events that both touch the window."""
    first, values = _overlap(window, "a.start_ns", "a.start_ns + a.duration_ns")
    second, more = _overlap(window, "b.start_ns", "b.start_ns + b.duration_ns")
    return run.engine.sql(
        f"""SELECT e.rank AS source_rank, e.source_id, e.target_rank, e.target_id, e.kind
            FROM edges AS e
            JOIN events AS a ON a.rank = e.rank AND a.event_id = e.source_id
            JOIN events AS b ON b.rank = e.target_rank AND b.event_id = e.target_id
            WHERE {first} AND {second}
            ORDER BY ALL""",
        values + more,
    ).arrow()


def counter_rows(run: Run, window: Window) -> pa.Table:
    """Counter values in the window, in order of time."""
    parts, values = ["true"], []
    if window.start_ns is not None:
        parts.append("timestamp_ns >= ?")
        values.append(window.start_ns)
    if window.end_ns is not None:
        parts.append("timestamp_ns < ?")
        values.append(window.end_ns)
    return run.engine.sql(
        f"SELECT rank, track_id, timestamp_ns, name, value, unit FROM counters WHERE {' AND '.join(parts)} ORDER BY ALL",
        values,
    ).arrow()


def line_rows(run: Run, window: Window) -> pa.Table:
    """What user line each thread was executing in the window, in order of time; stretches without a user line are left out."""
    condition, values = _overlap(window, "h.start_ns", "h.start_ns + h.duration_ns")
    return run.engine.sql(
        f"""SELECT h.rank, h.track_id, h.start_ns, h.duration_ns, s.file, s.line, s.function, s.code
            FROM host_states AS h JOIN sites AS s USING (site_id)
            WHERE {condition} ORDER BY h.rank, h.track_id, h.start_ns""",
        values,
    ).arrow()


def track_rows(run: Run) -> list[dict[str, Any]]:
    """All tracks."""
    return run.engine.sql("SELECT * FROM tracks ORDER BY rank, track_id").rows()


def device_rows(run: Run) -> list[dict[str, Any]]:
    """All devices."""
    return run.engine.sql("SELECT * FROM devices ORDER BY rank, device").rows()


def stack_rows(run: Run, *, device: bool) -> list[dict[str, Any]]:
    """Time by rank, thread and user call chain: of the thread itself, or of the device work it enqueued."""
    if device:
        text = """SELECT e.rank, coalesce(h.track_id, -1) AS track_id, e.stack_id, sum(e.duration_ns)::BIGINT AS duration_ns
                  FROM events AS e
                  JOIN device_tracks AS d ON d.rank = e.rank AND d.track_id = e.track_id
                  LEFT JOIN events AS h ON h.rank = e.rank AND h.event_id = e.launch_id
                  WHERE e.stack_id IS NOT NULL AND e.category IN ('kernel', 'copy', 'fill', 'collective', 'instruction', 'dma')
                  GROUP BY ALL ORDER BY ALL"""
    else:
        text = (
            "SELECT rank, track_id, stack_id, duration_ns FROM stack_times WHERE duration_ns > 0 ORDER BY ALL"
        )
    return run.engine.sql(text).rows()


def stack_frames(run: Run) -> dict[int, list[dict[str, Any]]]:
    """Frames of every call chain, outermost first."""
    frames: dict[int, list[dict[str, Any]]] = {}
    rows = run.engine.sql(
        """SELECT k.stack_id, s.site_id, s.file, s.line, s.function, s.code
           FROM stacks AS k JOIN sites AS s USING (site_id) ORDER BY k.stack_id, k.depth DESC"""
    )
    for row in rows.rows():
        frames.setdefault(row["stack_id"], []).append(row)
    return frames


def clock_rows(run: Run) -> list[dict[str, Any]]:
    """The clock of each rank against the reference rank's (`rank_clocks`)."""
    return run.engine.sql("SELECT rank, offset_ns, drift_ppb, reference_ns FROM rank_clocks").rows()
