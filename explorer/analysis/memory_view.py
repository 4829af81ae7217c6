"""Memory over time for a screen, and what was allocated at the peak."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from explorer.analysis.run import Run

BUCKETS = 600
"""Parts of the recording in a series; a screen joins them to its width."""


@dataclass(frozen=True)
class MemoryPicture:
    """Memory of one rank and device.

    `allocated` and `reserved` hold the largest value in each of BUCKETS equal parts from `start_ns` to `end_ns` (None:
    nothing known yet). `by_category`, `by_line`, `by_module` and `by_op` are what was allocated at the peak and had been recorded
    (size_bytes, share of the peak, blocks); `unseen_bytes` is the rest of the peak: allocated before the recording, or
    by what records no allocation.
    """

    rank: int
    device: str
    start_ns: int
    end_ns: int
    summary: dict[str, Any]
    allocated: list[float | None]
    reserved: list[float | None]
    by_category: list[dict[str, Any]]
    by_line: list[dict[str, Any]]
    by_module: list[dict[str, Any]]
    by_op: list[dict[str, Any]]
    unseen_bytes: int


def memory_pictures(run: Run) -> list[MemoryPicture]:
    """Every rank and device with memory events, the largest peak first."""
    rows = run.memory().rows()
    alive: dict[tuple[int, str], list[dict[str, Any]]] = {}
    for row in run.engine.sql("SELECT * FROM memory_peak WHERE category <> 'before_recording'").rows():
        alive.setdefault((row["rank"], row["device"]), []).append(row)
    pictures = [_picture(run, row, alive.get((row["rank"], row["device"]), [])) for row in rows]
    return sorted(pictures, key=lambda picture: -(picture.summary["peak_bytes"] or 0))


def _picture(run: Run, summary: dict[str, Any], live: list[dict[str, Any]]) -> MemoryPicture:
    rank, device = summary["rank"], summary["device"]
    engine = run.engine
    span = engine.sql(
        "SELECT min(timestamp_ns) AS a, max(timestamp_ns) AS b FROM memory_events WHERE rank = ? AND device = ?",
        [rank, device],
    ).rows()[0]
    start, end = span["a"], max(span["b"], span["a"] + 1)
    rows = engine.sql(
        "SELECT least((timestamp_ns - ?) * ? // (? - ?), ? - 1)::INT AS bucket, max(allocated_bytes) AS allocated,"
        " max(reserved_bytes) AS reserved, arg_max(allocated_bytes, (timestamp_ns, event_id)) AS last_allocated,"
        " arg_max(reserved_bytes, (timestamp_ns, event_id)) AS last_reserved"
        " FROM memory_timeline WHERE rank = ? AND device = ? GROUP BY bucket ORDER BY bucket",
        [start, BUCKETS, end, start, BUCKETS, rank, device],
    ).rows()
    allocated = _filled(rows, "allocated", "last_allocated")
    reserved = _filled(rows, "reserved", "last_reserved")
    peak = summary["peak_bytes"] or 0
    return MemoryPicture(
        rank=rank,
        device=device,
        start_ns=start,
        end_ns=end,
        summary=summary,
        allocated=allocated,
        reserved=reserved,
        by_category=_grouped(live, lambda row: row["category"], peak),
        by_line=_grouped(
            live, lambda row: f"{row['file']}:{row['line']}" if row["file"] else "no line known", peak
        ),
        by_module=_grouped(live, lambda row: row["module"] or "no module known", peak),
        by_op=_grouped(live, lambda row: row["op"] or "no op known", peak),
        unseen_bytes=max(0, peak - sum(row["size_bytes"] for row in live)),
    )


def _filled(rows: list[dict[str, Any]], key: str, last: str) -> list[float | None]:
    """One value per bucket: its largest, or the last one before it where nothing happened."""
    series: list[float | None] = []
    known = {row["bucket"]: row for row in rows}
    current: float | None = None
    for bucket in range(BUCKETS):
        row = known.get(bucket)
        if row is None or row[key] is None:
            series.append(current)
            continue
        series.append(float(row[key]) if current is None else max(float(row[key]), 0.0))
        current = float(row[last]) if row[last] is not None else current
    return series


def _grouped(rows: list[dict[str, Any]], key: Any, peak: int) -> list[dict[str, Any]]:
    groups: dict[str, dict[str, Any]] = {}
    for row in rows:
        group = groups.setdefault(
            key(row),
            {
                "what": key(row),
                "size_bytes": 0,
                "blocks": 0,
                "code": row["code"] or "",
                "file": row["file"],
                "line": row["line"],
            },
        )
        group["size_bytes"] += row["size_bytes"]
        group["blocks"] += row["blocks"]
    for group in groups.values():
        group["share"] = group["size_bytes"] / peak if peak else 0.0
    return sorted(groups.values(), key=lambda group: -group["size_bytes"])
