"""A Python loop takes a tensor apart row by row or element by element."""

from __future__ import annotations

import re
from collections.abc import Sequence

from explorer.analysis.code_loop import CodeLines, CodeLoop
from explorer.analysis.rule import Draft, Rule, Setting
from explorer.analysis.rule_context import RuleContext
from explorer.analysis.rule_sql import states_at, union_ns
from explorer.model.finding import Saving

INDEXING = (
    "aten::select", "aten::index", "aten::slice", "aten::narrow", "aten::item", "aten::_local_scalar_dense",
    "aten::index_put_", "aten::unbind", "aten::is_nonzero", "aten::index_select", "aten::unsqueeze", "aten::copy_",
)  # fmt: skip

ENGINE_NS = 50_000
"""Longest pause between two backward nodes that still counts as the engine's own work for the first."""


def check(context: RuleContext) -> Sequence[Draft]:
    passes = context.setting(RULE, "passes")
    loops = [
        loop for loop in CodeLines(context).loops(passes) if not loop.header.code.startswith("while True")
    ]
    if not loops:
        return []
    indexed = _indexing_sites(context)
    drafts = []
    taken: set[int] = set()
    # The loop with most passes is the innermost one: it is the one to remove.
    for loop in sorted(loops, key=lambda item: (-item.passes, item.header.line)):
        takes_apart = any(
            indexed.get(line.site_id, 0) >= passes and _by_row(loop, line.code) for line in loop.lines
        )
        over_rows = indexed.get(loop.header.site_id, 0) > 0 and loop.header.code.startswith(
            ("for", "async for")
        )
        if not (takes_apart or over_rows) or taken & {line.site_id for line in loop.lines}:
            continue
        if _recurs(loop):
            # Each pass computes on the result of the one before: no tensor expression replaces that.
            continue
        if draft := _draft(context, loop):
            taken |= {line.site_id for line in loop.lines}
            drafts.append(draft)
    return drafts


def _by_row(loop: CodeLoop, code: str) -> bool:
    return loop.indexes(code) or (loop.header.code.startswith("while") and "[" in code)


def _indexing_sites(context: RuleContext) -> dict[int, float]:
    rows = context.rows(
        f"""SELECT o.executing_site_id AS site_id, count(*) / {context.count} AS calls FROM top_ops o
        WHERE {context.where("o")} AND o.track_id = {context.main_track} AND {context.in_texts("o.name", INDEXING)}
          AND o.executing_site_id IS NOT NULL GROUP BY 1"""
    )
    return {row["site_id"]: float(row["calls"]) for row in rows}


def affected_by_loop(context: RuleContext, sites: Sequence[int]) -> str:
    """SQL for the time of a loop: states with one of its lines on the stack, and backward ops of its lines."""
    chains = f"h.stack_id IN (SELECT k.stack_id FROM stacks k WHERE {context.in_sites('k.site_id', sites)})"
    states = states_at(context.scope.rank, context.main_track, context.where("s"), chains)
    return f"""SELECT start_ns, duration_ns FROM ({states})
UNION ALL SELECT start_ns, duration_ns FROM ({backward_nodes(context)}) WHERE {context.in_sites("site_id", sites)}"""


def backward_nodes(context: RuleContext) -> str:
    """SQL for the outermost backward ops as (start_ns, duration_ns, site_id), each with the engine's time until the next."""
    return context.engine.keep(
        f"""SELECT o.start_ns, o.site_id, greatest(o.duration_ns, least(o.duration_ns + {ENGINE_NS},
    coalesce(lead(o.start_ns) OVER (PARTITION BY o.track_id ORDER BY o.start_ns) - o.start_ns, 0))) AS duration_ns
FROM top_ops o WHERE {context.where("o")} AND o.phase = 'backward'"""
    )


def _draft(context: RuleContext, loop: CodeLoop) -> Draft | None:
    sites = [line.site_id for line in loop.lines]
    affected = affected_by_loop(context, sites)
    backward = context.rows(
        f"SELECT 1 FROM ({backward_nodes(context)}) WHERE {context.in_sites('site_id', sites)} LIMIT 1"
    )
    calls = "what it calls and its part of the backward pass" if backward else "what it calls"
    evidence, row = context.evidence(
        (
            "The comprehension's line calls"
            if loop.is_comprehension
            else "The loop passes {passes} times and calls"
        )
        + f" {{top_ops}} ops per step; it takes {{loop_ns}} per step with {calls}.",
        f"""SELECT (union_ns / {context.count})::BIGINT AS loop_ns, w.* FROM ({union_ns(affected)}),
  (SELECT sum(visits) FILTER (WHERE l.site_id = {loop.header.site_id}) / {context.count} AS passes, sum(top_ops) / {context.count} AS top_ops FROM line_steps l
   WHERE {context.where("l")} AND l.track_id = {context.main_track} AND {context.in_sites("l.site_id", sites)}) w""",
    )
    loop_ns = row["loop_ns"]
    if loop_ns < context.setting(RULE, "loop_share") * context.scope.mean_ns:
        return None
    kept = _kept_share(context, loop)
    expected = round((1 - kept) * loop_ns)
    least_ns = max(
        context.setting(RULE, "loop_share") * context.scope.mean_ns,
        context.setting(RULE, "saved_share") * loop_ns,
    )
    if expected < least_ns:
        # A loop over large work: its passes are not what takes the time.
        return None
    # The header is among the three lines that every face shows: it is where the loop is taken out.
    body = [line for line in loop.body if line.site_id != loop.header.site_id]
    worst = sorted(body, key=lambda line: (-line.host_ns, line.line))[:2]
    lines = {line.site_id: round(line.host_ns) for line in (*worst, loop.header)}
    return Draft(
        title=f"Loop over rows or elements at {context.place(loop.header.site_id)}",
        line_times_ns=lines,
        saving=Saving(low=round(0.7 * expected), expected=expected, high=loop_ns),
        evidence=[evidence],
        advice=_advice(loop),
        affected=affected,
        remaining_share=kept,
        caveats=["Only where a pass does not need the result of the one before it."]
        if _carries(loop)
        else [],
        confidence="high",
        key="",
    )


def _kept_share(context: RuleContext, loop: CodeLoop) -> float:
    """What part of the loop stays when it is one tensor expression: of each op what lies above the cost of calling it at all.

    One large call moves the same numbers with one setup and better locality than many small ones; ops that are large already
    stay as they are. Everything by medians (Python by quiet steps), so that an interruption counts as neither work nor saving.
    """
    sites = [line.site_id for line in loop.lines]
    call_ns, large_ns = context.setting(RULE, "call_ns"), context.setting(RULE, "large_ns")
    row = context.row(
        f"""SELECT coalesce(sum(calls * typical_ns) / {context.count}, 0)::BIGINT AS ops_ns,
          coalesce(sum(calls * greatest(0, typical_ns - {call_ns:.0f})
            * CASE WHEN typical_ns < {large_ns:.0f} THEN {context.setting(RULE, "batched_share")} ELSE 1 END) / {context.count}, 0)::BIGINT AS kept_ns
        FROM (SELECT e.name, count(*) AS calls, median(e.self_ns) AS typical_ns FROM events e
          LEFT JOIN stacks k ON k.stack_id = e.stack_id AND k.depth = 0
          WHERE {context.where()} AND e.category = 'op'
            AND ({context.in_sites("k.site_id", sites)} OR {context.in_sites("e.site_id", sites)})
          GROUP BY e.name)"""
    )
    # A sum takes longer where others have the processor, a median hardly does.
    whole = row["ops_ns"] + sum(line.quiet_python_ns for line in loop.lines) / context.stretch
    return row["kept_ns"] / whole if whole else 0.0


def _carries(loop: CodeLoop) -> bool:
    """Whether a line of the body both reads and assigns one name: `h = f(x[t], h)`."""
    for line in loop.body:
        name, equals, value = line.code.partition(" = ")
        if equals and name.isidentifier() and name in value:
            return True
    return False


def _recurs(loop: CodeLoop) -> bool:
    """Whether a line of the body hands the name it assigns to a call: `state = cell(x, state)`."""
    for line in loop.body:
        name, equals, value = line.code.partition(" = ")
        if equals and name.isidentifier() and re.search(rf"\w\([^()]*\b{name}\b", value):
            return True
    return False


def _advice(loop: CodeLoop) -> str:
    source = loop.source or loop.header.code
    text = f"Replace the loop `{loop.header.code}` by one tensor expression over the whole dimension"
    body = " ".join(line.code for line in loop.body)
    if ".item()" in body or "float(" in body or "int(" in body:
        text += (
            "; if Python numbers are needed, fetch them once with .tolist() instead of .item() per element"
        )
    elif ".append(" in body:
        text += (
            "; the list of results becomes one batched call, or torch.stack / torch.vmap over the dimension"
        )
    elif "] =" in body or "] +=" in body:
        text += "; assign through a slice, a mask with torch.where, or index_put/scatter"
    return f"{text} (it runs over `{source}`)."


RULE = Rule(
    name="row_loop",
    title="Per-row or per-element loop",
    specificity=3,
    needs=("host_states", "ops"),
    check=check,
    settings=(
        Setting(
            "passes",
            16,
            "Fewest passes per step that count as a loop over rows",
            "ours: model code loops over layers and heads, rarely 16 times with an index",
        ),
        Setting("loop_share", 0.03, "Smallest part of the step", "ours: the 'medium' limit of severities"),
        Setting(
            "call_ns",
            4_000,
            "Cost of calling a small op at all, which batching removes",
            "measured: 3 to 10 µs per small eager op with Python, torch 2.13 on CPU",
        ),
        Setting(
            "batched_share",
            0.5,
            "Part of the real work that stays when rows are batched",
            "measured on the planted programs",
        ),
        Setting(
            "large_ns",
            100_000,
            "An op of this length is large work already, which batching does not shorten",
            "ours: 25 times the cost of the call",
        ),
        Setting("saved_share", 0.15, "Smallest part of the loop's own time that batching saves", "ours"),
    ),
)
