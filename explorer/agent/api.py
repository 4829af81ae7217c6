"""The verbs of the query API. Each takes an open run and returns a Document; times are integers in ns, shares 0 to 1."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from explorer.agent.arguments import typed
from explorer.agent.document import Document
from explorer.agent.paging import offset_of, page
from explorer.model.errors import QueryError, UsageError

if TYPE_CHECKING:
    from explorer.analysis.run import Run

LONGEST_TEXT = 240
"""Names and code lines are cut to this many characters: template kernels have up to 5,000. `sql` gives them whole."""

DEFAULT_LIMIT = 20

MOST_EDITS = 20

MOST_COLUMNS = 200
"""Of a query: one row of more would fill an agent's context."""


@typed
def summary(run: Run, limit: int = DEFAULT_LIMIT, cursor: str | None = None) -> Document:
    """How long a step takes and where the busiest device's time goes, one row per rank."""
    return _rows(run, "summary", run.summary().rows(), limit, cursor)


@typed
def health(run: Run, limit: int = DEFAULT_LIMIT, cursor: str | None = None) -> Document:
    """What is missing, broken, repaired or doubtful, worst first, and which answers it makes less certain."""
    return _rows(run, "health", run.health().rows(), limit, cursor)


@typed
def bottlenecks(run: Run, limit: int = 5, cursor: str | None = None, detail: str = "brief") -> Document:
    """What to change, worst first: line, saving per step, advice.

    `detail` 'brief' leaves out the SQL of the evidence (`finding` gives it); 'full' is the contract of
    `bottlenecks --json`. `not_checked` says what this run cannot tell, and why. Raises UsageError for another detail.
    """
    if detail not in ("brief", "full"):
        raise UsageError(f"detail '{detail}' is not brief or full.")
    findings = run.bottlenecks()
    document = findings.to_dict()
    rows = document["findings"] if detail == "full" else [_brief(item) for item in document["findings"]]
    fields = {
        "run": run.directory,
        "step_ns": document["step_ns"],
        "recorded_step_ns": document["recorded_step_ns"],
        "steps": document["steps"],
        "ranks": document["ranks"],
    }
    if detail == "full":
        answer = page(
            document["schema"], {**fields, "health": document["health"]}, "findings", rows, limit, cursor
        )
        extra: dict[str, Any] = {"not_checked": document["not_checked"]}
    else:
        answer = page("neuron-explorer/findings-brief/1", fields, "findings", rows, limit, cursor)
        extra = {
            "not_checked": _reasons(document["not_checked"]),
            "doubts": [item["kind"] for item in document["health"] if item["severity"] != "info"],
        }
    return Document(answer.schema, answer.fields, "findings", answer.rows, answer.offset, answer.total, extra)


def _reasons(not_checked: Iterable[Mapping[str, str]]) -> dict[str, int]:
    """How many rules could not be checked, by reason. Rules for another kind of hardware are no gap and left out."""
    counts: dict[str, int] = {}
    for item in not_checked:
        if not item["rule"].startswith("neuron_"):
            counts[item["reason"]] = counts.get(item["reason"], 0) + 1
    return counts


def _brief(finding: Mapping[str, Any]) -> dict[str, Any]:
    lines = [
        {
            "file": line["file"],
            "line": line["line"],
            "function": line["function"],
            "code": line["code"],
            "time_ns": line["time_ns"],
        }
        for line in finding["lines"][:3]
    ]
    return {
        "id": finding["id"],
        "title": finding["title"],
        "severity": finding["severity"],
        "confidence": finding["confidence"],
        "saving_ns": finding["saving_ns"],
        "saving_share": finding["saving_share"],
        "saving_basis": finding["saving_basis"],
        "lines": [_short(line) for line in lines],
        "evidence": [item["statement"] for item in finding["evidence"]],
        "advice": finding["advice"],
        "caveats": finding["caveats"] or None,
        "symptoms": finding["symptoms"] or None,
    }


@typed
def finding(run: Run, finding_id: str) -> Document:
    """One finding whole, with the SQL that reproduces its numbers and events to look at. Raises UsageError: no such id."""
    document = run.bottlenecks().to_dict()
    for item in document["findings"]:
        if item["id"] == finding_id:
            return Document("neuron-explorer/finding/1", {"run": run.directory, "finding": item})
    known = ", ".join(item["id"] for item in document["findings"]) or "none"
    raise UsageError(f"There is no finding '{finding_id}' in this run.", f"Findings: {known}.")


@typed
def lines(
    run: Run, limit: int = DEFAULT_LIMIT, cursor: str | None = None, file: str | None = None
) -> Document:
    """Source lines by what they cost on host and devices; `file` keeps one file (its end is enough)."""
    rows = run.lines().rows()
    if file is not None:
        rows = [row for row in rows if str(row["file"]).endswith(file)]
    return _rows(run, "lines", rows, limit, cursor)


@typed
def ops(run: Run, limit: int = DEFAULT_LIMIT, cursor: str | None = None) -> Document:
    """Framework ops by host and device time."""
    return _rows(run, "ops", run.ops().rows(), limit, cursor)


@typed
def kernels(run: Run, limit: int = DEFAULT_LIMIT, cursor: str | None = None) -> Document:
    """Device work by name. A run of a CPU has none."""
    return _rows(run, "kernels", run.kernels().rows(), limit, cursor)


@typed
def modules(run: Run, limit: int = DEFAULT_LIMIT, cursor: str | None = None) -> Document:
    """nn.Modules by time, their own and with everything below."""
    return _rows(run, "modules", run.modules().rows(), limit, cursor)


@typed
def steps(run: Run, limit: int = DEFAULT_LIMIT, cursor: str | None = None) -> Document:
    """Each step: its time, busy and idle time of its device, ops, kernels."""
    return _rows(run, "steps", run.steps().rows(), limit, cursor)


@typed
def breakdown(run: Run, limit: int = DEFAULT_LIMIT, cursor: str | None = None) -> Document:
    """wall = compute + exposed communication + exposed copies + idle, per rank, device and step, exactly."""
    return _rows(run, "breakdown", run.breakdown().rows(), limit, cursor)


@typed
def gaps(run: Run, limit: int = DEFAULT_LIMIT, cursor: str | None = None) -> Document:
    """Idle intervals of devices with their causes, longest first."""
    rows = sorted(run.gaps().rows(), key=lambda row: (-row["duration_ns"], row["start_ns"]))
    return _rows(run, "gaps", rows, limit, cursor)


@typed
def memory(run: Run, limit: int = DEFAULT_LIMIT, cursor: str | None = None) -> Document:
    """Peak, growth and churn of memory per rank and device."""
    return _rows(run, "memory", run.memory().rows(), limit, cursor)


@typed
def collectives(run: Run, limit: int = DEFAULT_LIMIT, cursor: str | None = None) -> Document:
    """Communication by group, operation and size: calls and bytes."""
    rows = run.engine.sql(
        """SELECT c."group", c.group_description, c.operation, c.side, c.dtype, c.group_size, count(*) AS calls,
                  sum(c.size_bytes)::BIGINT AS total_bytes, median(c.size_bytes)::BIGINT AS p50_bytes,
                  sum(e.duration_ns)::BIGINT AS total_ns, median(e.duration_ns)::BIGINT AS p50_ns
           FROM collectives AS c JOIN events AS e USING (rank, event_id)
           GROUP BY ALL ORDER BY total_ns DESC, c.operation, c."group" """
    ).rows()
    return _rows(run, "collectives", rows, limit, cursor)


@typed
def critical_path(run: Run, limit: int = DEFAULT_LIMIT, cursor: str | None = None) -> Document:
    """The chain of work a step is made of, by kind, and by source line: only this time can make a step shorter."""
    kinds = run.view("critical_path_kinds").rows()
    rows = [_short(row) for row in run.view("critical_path_lines").rows()]
    return page(
        "neuron-explorer/critical-path/1",
        {"run": run.directory, "kinds": kinds},
        "lines",
        rows,
        limit,
        cursor,
    )


@typed
def what_if(
    run: Run, speedup: Iterable[str] = (), remove: Iterable[str] = (), overlap: Iterable[str] = ()
) -> Document:
    """The step time with changes, by replay. `speedup` 'line=model.py:57:2x', `remove` 'sync', `overlap` 'copies'.

    Raises UsageError for a change that cannot be read or selects nothing.
    """
    from explorer.analysis.what_if import Replays, parse_overlap, parse_remove, parse_speedup

    edits = [
        *(parse_speedup(text) for text in speedup),
        *(parse_remove(text) for text in remove),
        *(parse_overlap(text) for text in overlap),
    ]
    if not edits:
        raise UsageError("Nothing to change.", "Give speedup, remove or overlap.")
    if len(edits) > MOST_EDITS:
        raise UsageError(
            f"{len(edits)} changes are too many for one prediction.", f"Give at most {MOST_EDITS}."
        )
    document = Replays(run.engine).predict(edits).to_dict()
    name = document.pop("schema")
    return Document(name, {"run": run.directory, **document})


@typed
def source(
    run: Run,
    file: str,
    around: int | None = None,
    context: int = 12,
    limit: int = 1000,
    cursor: str | None = None,
) -> Document:
    """Source text as it ran with the cost of each line. `around` keeps the lines near one; else lines with a cost, whole.

    Raises UsageError when no line of the run lies in the file.
    """
    from explorer.analysis.source_view import code_file, line_rows

    rows = line_rows(run)
    names = sorted({row["file"] for row in rows if row["file"] == file or row["file"].endswith("/" + file)})
    if not names:
        known = ", ".join(sorted({row["file"] for row in rows if row["is_user"]})[:10]) or "none"
        raise UsageError(f"No line of this run lies in '{file}'.", f"Files: {known}.")
    code = code_file(run, rows, names[0])
    shown = [_line(line) for line in code.lines if around is None or abs(line.number - around) <= context]
    if around is not None and not shown:
        numbers = [line.number for line in code.lines]
        known = f"It has lines {min(numbers)} to {max(numbers)}." if numbers else ""
        raise UsageError(f"Line {around} is not near any line of '{names[0]}'.", known)
    steps = sum(1 for row in run.steps() if row["complete"] and row["rank"] == run.ranks[0])
    fields = {
        "run": run.directory,
        "file": names[0],
        "whole_text": code.complete,
        "costs": f"totals of the recording, warm-up included; it holds {steps} complete steps",
    }
    return page("neuron-explorer/source/1", fields, "lines", shown, limit, cursor)


def _line(line: Any) -> dict[str, Any]:
    costs = line.costs or {}
    kept = {
        key: costs[key] or None for key in ("cost_ns", "device_ns", "calls", "ops", "kernels") if key in costs
    }
    return {"line": line.number, "text": line.text[:LONGEST_TEXT], **kept}


@typed
def event(run: Run, event_id: str) -> Document:
    """One event with its line, its call chain, what enqueued it and what it enqueued. `event_id` is '<rank>:<event_id>'.

    Raises UsageError: no such event.
    """
    from explorer.agent.event_facts import event_facts

    return Document("neuron-explorer/event/1", {"run": run.directory, **event_facts(run, event_id)})


@typed
def neighbours(run: Run, event_id: str, limit: int = DEFAULT_LIMIT, cursor: str | None = None) -> Document:
    """What stands around an event: enclosing, enclosed, before and after on its track, and linked by an edge."""
    from explorer.agent.event_facts import neighbour_rows

    return page(
        "neuron-explorer/neighbours/1",
        {"run": run.directory, "event": event_id},
        "events",
        neighbour_rows(run, event_id),
        limit,
        cursor,
    )


@typed
def compare(
    run: Run, other: Run, by: str = "line", limit: int = DEFAULT_LIMIT, cursor: str | None = None
) -> Document:
    """What changed from `run` to `other`: the step time with a verdict against noise, and what explains it.

    The rows are changes by kind, phase, module, line, op or kernel, largest first: time on the critical path per step, which
    add up to the change of the step. Raises UsageError for another `by`.
    """
    from explorer.analysis.diff.comparison import DIMENSIONS

    if by not in DIMENSIONS:
        raise UsageError(f"Cannot compare by '{by}'.", f"Choose one of: {', '.join(DIMENSIONS)}.")
    document = run.compare(other).to_dict()
    fields = {key: value for key, value in document.items() if key not in ("schema", "explained")}
    rows = [_short(row) for row in document["explained"][by]]
    return page("neuron-explorer/compare/1", {**fields, "by": by}, "changes", rows, limit, cursor)


@typed
def schema(run: Run, name: str | None = None, limit: int = 1000, cursor: str | None = None) -> Document:
    """Every table and view that `sql` can name, with a sentence each; with `name` its columns."""
    from explorer.agent.relation_docs import relation_docs

    return relation_docs(run, name, limit, cursor)


@typed
def sql(run: Run, text: str, limit: int = 100, cursor: str | None = None) -> Document:
    """One read-only statement, in the sandbox. Raises QueryError with one line: refused, wrong, too slow or too large.

    `truncated` says that the statement has more rows than were fetched for this page: how many is not known.
    """
    from explorer.analysis.sandbox import MAX_BYTES

    seen = offset_of(limit, cursor)
    result = run.sql(text, max_rows=seen + limit)
    if len(result.columns) > MOST_COLUMNS:
        raise QueryError(
            f"The statement gives {len(result.columns)} columns.", f"Ask for at most {MOST_COLUMNS} of them."
        )
    rows = [_short(row) for row in result.rows()][seen:]
    if result.truncated and not rows:
        raise QueryError(
            f"The rows before this page are larger than an answer may be ({MAX_BYTES >> 20} MiB).",
            "Ask for fewer columns, or write LIMIT and OFFSET into the statement.",
        )
    # One more than was fetched, where there is more: next_cursor then points behind this page.
    total = seen + len(rows) + (1 if result.truncated else 0)
    return Document(
        "neuron-explorer/query/1",
        {"run": run.directory, "columns": [_cut(name) for name in result.columns]},
        "rows",
        tuple(rows),
        seen,
        total,
        {"truncated": result.truncated},
    )


ANSWERS: dict[str, Callable[..., Document]] = {
    function.__name__: function
    for function in (
        summary, health, bottlenecks, finding, lines, ops, kernels, modules, steps, breakdown, gaps, memory,
        collectives, critical_path, what_if, source, event, neighbours, compare, schema, sql,
    )
}  # fmt: skip
"""Every verb by name."""


def _rows(run: Run, name: str, rows: Iterable[Mapping[str, Any]], limit: int, cursor: str | None) -> Document:
    shown = [_short(row) for row in rows]
    return page(f"neuron-explorer/{name}/1", {"run": run.directory}, "rows", shown, limit, cursor)


def _short(row: Mapping[str, Any]) -> dict[str, Any]:
    return {_cut(key): _cut(value) if isinstance(value, str) else value for key, value in row.items()}


def _cut(text: str) -> str:
    return text[:LONGEST_TEXT] + "…" if len(text) > LONGEST_TEXT else text
