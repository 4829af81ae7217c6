"""Source code with its costs: files by cost, a file's text with columns per line, and what a line ran and who called it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from explorer.analysis.line_efficiency import rates

if TYPE_CHECKING:
    from explorer.analysis.run import Run

_WORK = ("work_flops", "work_ns", "least_ns")
_SUMS = ("cost_ns", "host_ns", "python_ns", "op_ns", "device_ns", "ops", "kernels")


@dataclass(frozen=True)
class CodeLine:
    """A line of a file and what it costs; `costs` is None for a line that cost nothing. Keys: cost_ns, host_ns,
    python_ns, op_ns, device_ns, share, device_share, top_share (the larger), calls, ops, kernels, flops, flops_per_s,
    allocated_bytes; and those of `with_efficiency`, where the rows have them."""

    number: int
    text: str
    costs: dict[str, Any] | None
    function: str = ""


@dataclass(frozen=True)
class CodeFile:
    """A file's lines. `complete` is False where the run does not hold the text: only lines with a cost are known."""

    file: str
    lines: tuple[CodeLine, ...]
    complete: bool


@dataclass(frozen=True)
class LineDetail:
    """What a line ran (`ops`, `kernels`: name, calls, host or device time) and the lines that call it and that it
    calls (`callers`, `callees`: file, line, function, code, duration_ns of the chains through both)."""

    ops: list[dict[str, Any]]
    kernels: list[dict[str, Any]]
    callers: list[dict[str, Any]]
    callees: list[dict[str, Any]]


def line_rows(run: Run) -> list[dict[str, Any]]:
    """`lines_by_place` with the work of `line_work`, costliest first."""
    return run.engine.sql(
        """
        WITH work AS (
            SELECT s.file, s.line, CASE WHEN s.line > 0 THEN 0 ELSE site_id END AS only_site,
                   sum(w.flops) AS flops, sum(w.allocated_bytes)::BIGINT AS allocated_bytes
            FROM line_work AS w JOIN sites AS s USING (site_id)
            GROUP BY ALL
        )
        SELECT l.*, w.flops, w.allocated_bytes, w.flops / nullif(l.device_ns / 1e9, 0) AS flops_per_s,
               greatest(l.share, l.device_share) AS top_share
        FROM lines_by_place AS l
        LEFT JOIN work AS w
            ON w.file = l.file AND w.line = l.line AND w.only_site = CASE WHEN l.line > 0 THEN 0 ELSE l.site_id END
        ORDER BY l.device_ns + l.cost_ns DESC, l.file, l.line
        """
    ).rows()


def files_of(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Files by cost, user code before libraries: file, cost_ns, device_ns, share, device_share, line_count, is_user."""
    files: dict[str, dict[str, Any]] = {}
    for row in rows:
        file = files.setdefault(
            row["file"],
            {
                "file": row["file"],
                "is_user": False,
                "line_count": 0,
                "cost_ns": 0,
                "device_ns": 0,
                "share": 0.0,
                "device_share": 0.0,
            },
        )
        file["is_user"] |= bool(row["is_user"])
        file["line_count"] += 1
        for key in ("cost_ns", "device_ns", "share", "device_share"):
            file[key] += row[key] or 0
    return sorted(
        files.values(), key=lambda f: (not f["is_user"], -(f["cost_ns"] + f["device_ns"]), f["file"])
    )


def code_file(run: Run, rows: list[dict[str, Any]], file: str) -> CodeFile:
    """A file with its costs, from the text stored in the run; where there is none, the lines that are known."""
    costs: dict[int, dict[str, Any]] = {}
    functions: dict[int, str] = {}
    code: dict[int, str] = {}
    for row in rows:
        if row["file"] == file:
            number = row["line"]
            code[number] = row["code"] or ""
            functions[number] = row["function"]
            costs[number] = _joined(costs.get(number), row)
    stored = run.engine.sql("SELECT text FROM sources WHERE file = ? LIMIT 1", [file]).rows()
    if stored:
        texts = stored[0]["text"].split("\n")
        if texts and not texts[-1]:
            texts.pop()
        numbers = range(1, max(len(texts), max(costs, default=0)) + 1)
        lines = [
            CodeLine(
                n, texts[n - 1] if n <= len(texts) else code.get(n, ""), costs.get(n), functions.get(n, "")
            )
            for n in numbers
        ]
        return CodeFile(file, tuple(lines), True)
    return CodeFile(file, tuple(CodeLine(n, code[n], costs[n], functions[n]) for n in sorted(costs)), False)


def _joined(first: dict[str, Any] | None, row: dict[str, Any]) -> dict[str, Any]:
    """Costs of two sites on one line added up."""
    if first is None:
        return dict(row)
    joined = dict(first)
    for key in (*_SUMS, *_WORK, "share", "device_share", "top_share", "calls", "flops", "allocated_bytes"):
        if row.get(key) is not None:
            joined[key] = (joined.get(key) or 0) + row[key]
    joined["flops_per_s"] = (
        joined["flops"] * 1e9 / joined["device_ns"] if joined["flops"] and joined["device_ns"] else None
    )
    return rates(joined) if "work_ns" in joined else joined


def line_detail(run: Run, file: str, line: int, limit: int = 50) -> LineDetail:
    """What one line ran, who called it and what it called."""
    engine = run.engine
    sites = "(SELECT site_id FROM sites WHERE file = ? AND line = ?)"
    ops = engine.sql(
        "SELECT e.name, count(*) AS calls, sum(e.self_ns)::BIGINT AS self_ns, sum(e.duration_ns)::BIGINT AS total_ns"
        f" FROM host_events AS e JOIN event_lines AS l USING (rank, event_id) WHERE l.site_id IN {sites}"
        " AND e.category = 'op' GROUP BY e.name ORDER BY self_ns DESC LIMIT ?",
        [file, line, limit],
    ).rows()
    kernels = engine.sql(
        "SELECT e.name, e.category, count(*) AS calls, sum(e.duration_ns * l.share)::BIGINT AS total_ns"
        f" FROM device_events AS e JOIN event_lines AS l USING (rank, event_id) WHERE l.site_id IN {sites}"
        " GROUP BY e.name, e.category ORDER BY total_ns DESC LIMIT ?",
        [file, line, limit],
    ).rows()
    return LineDetail(
        ops, kernels, _neighbours(run, file, line, 1, limit), _neighbours(run, file, line, -1, limit)
    )


def _neighbours(run: Run, file: str, line: int, way: int, limit: int) -> list[dict[str, Any]]:
    """Lines one frame further out (way 1) or in (way -1) in the chains through this line, by the time of the chains."""
    return run.engine.sql(
        """
        WITH own AS (
            SELECT stack_id, depth FROM stacks JOIN sites USING (site_id) WHERE file = ? AND line = ?
        ), times AS (
            SELECT stack_id, sum(duration_ns) AS duration_ns FROM stack_times
            WHERE stack_id IN (SELECT stack_id FROM own) GROUP BY stack_id
        )
        SELECT s.file, s.line, s.function, s.code, sum(t.duration_ns)::BIGINT AS duration_ns
        FROM own AS o
        JOIN stacks AS k ON k.stack_id = o.stack_id AND k.depth = o.depth + ?
        JOIN times AS t ON t.stack_id = o.stack_id
        JOIN sites AS s ON s.site_id = k.site_id
        GROUP BY ALL
        ORDER BY duration_ns DESC
        LIMIT ?
        """,
        [file, line, way, limit],
    ).rows()
