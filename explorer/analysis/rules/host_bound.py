"""Python, not ops, takes the time: on a device it idles while the host runs; on the CPU a line spends it outside ops."""

from __future__ import annotations

import re
from collections.abc import Sequence

from explorer.analysis.code_loop import CodeLines, Line
from explorer.analysis.launch_advice import compile_advice
from explorer.analysis.paused_lines import paused_after
from explorer.analysis.rule import Draft, Rule, Setting
from explorer.analysis.rule_context import RuleContext
from explorer.analysis.rule_sql import states_at, time_outside
from explorer.model.finding import Saving

_LIBRARY_CALLS = re.compile(r"(?:^|\.)(?:step|zero_grad|backward|manual_seed|synchronize)\(")


def check(context: RuleContext) -> Sequence[Draft]:
    if "device" in context.has:
        return _device(context)
    return _lines(context)


def _lines(context: RuleContext) -> list[Draft]:
    """User functions of pure Python: lines whose time outside ops is more than calling their ops would explain."""
    # What calling ops costs takes as much longer as everything else where others have the processor.
    allowance = context.stretch * context.setting(RULE, "op_allowance_ns")
    visit_allowance = context.stretch * context.setting(RULE, "visit_allowance_ns")
    code = CodeLines(context)
    over: dict[int, float] = {}
    by_function: dict[tuple[str, str], list[Line]] = {}
    for line in code.lines:
        allowed = allowance * line.top_ops + visit_allowance * min(line.visits, 1)
        if line.own_ns > allowed and not _expected(line):
            over[line.site_id] = line.own_ns - allowed
            by_function.setdefault((line.file, line.function), []).append(line)
    drafts = []
    smallest = context.setting(RULE, "python_share") * context.scope.mean_ns
    for (file, function), lines in by_function.items():
        if sum(over[line.site_id] for line in lines) < smallest:
            continue
        # The allowances are set against quiet steps; findings expect means.
        net_ns, own_ns = code.quiet(lines)
        excess = own_ns - sum(line.own_ns - over[line.site_id] for line in lines)
        if excess < smallest:
            continue
        # What may be expected of a line decides whether it is named; of its time, only calling its ops has to stay.
        saved = own_ns - context.setting(RULE, "op_call_ns") * sum(line.top_ops for line in lines)
        # A hot function that the recorder backed off from is charged to its def line: name a line of its body first.
        lines.sort(key=lambda line: (_is_definition(line), -over[line.site_id], line.line))
        drafts.append(_draft(context, file, function, lines, min(1.0, max(excess, saved) / max(1.0, net_ns))))
    return drafts


def _draft(context: RuleContext, file: str, function: str, lines: Sequence[Line], share: float) -> Draft:
    """`share`: the part of these lines' Python time that can be saved."""
    sites = [line.site_id for line in lines]
    states = states_at(
        context.scope.rank, context.main_track, context.where("s"), context.in_sites("h.site_id", sites)
    )
    paused = f"SELECT * FROM ({paused_after(context)})"
    mine = f"{paused} WHERE {context.in_sites('site_id', sites)}"
    others = f"""{paused} WHERE {context.in_sites("caller_site_id", sites)}"""
    elsewhere = f"""SELECT o.start_ns, o.duration_ns FROM top_ops o WHERE {context.where("o")} AND o.track_id = {context.main_track}
UNION ALL SELECT start_ns, duration_ns FROM ({others})"""
    affected = f"""SELECT start_ns, duration_ns FROM ({time_outside(states, elsewhere)})
UNION ALL SELECT start_ns, duration_ns FROM ({mine})"""
    evidence, row = context.evidence(
        "Lines of this function spend {python_ns} per step in Python outside ops, with {top_ops} op calls among them.",
        f"""SELECT (SELECT coalesce(sum(duration_ns), 0) / {context.count} FROM ({affected}))::BIGINT AS python_ns,
  coalesce(sum(top_ops), 0) / {context.count} AS top_ops
FROM line_steps l WHERE {context.where("l")} AND l.track_id = {context.main_track} AND {context.in_sites("l.site_id", sites)}""",
    )
    expected = round(share * row["python_ns"])
    inferred = context.row(f"SELECT count(*) AS n FROM ({mine})")["n"]
    return Draft(
        title=f"Python work in {function} ({file})",
        line_times_ns={line.site_id: round(line.host_ns) for line in lines[:3]},
        saving=Saving(low=expected // 2, expected=expected, high=row["python_ns"]),
        evidence=[evidence],
        advice=_advice(lines[0]),
        affected=affected,
        remaining_share=1 - expected / max(1, row["python_ns"]),
        confidence="medium",
        caveats=[
            "Recording paused in this hot code; the time up to the next op is taken as its own, and missing in its lines."
        ]
        if inferred
        else [],
        key=f"{file}:{function}",
    )


def _is_definition(line: Line) -> bool:
    return line.code.startswith(("def ", "async def ", "class ", "@"))


def _expected(line: Line) -> bool:
    """Calls that every training loop makes: what Python they run is the library's, not the program's."""
    return bool(_LIBRARY_CALLS.search(line.code))


_PREPARES_DATA = re.compile(
    r"(?i)token|encode\(|\.split\(|pandas|\bpd\.|read_csv|numpy|\bnp\.|json\.|PIL|cv2"
)


def _advice(line: Line) -> str:
    code = f"`{line.code}` " if line.code else "This code "
    if _PREPARES_DATA.search(line.code):
        return (
            code
            + "prepares data on the training thread in each step: do it once before training and keep the result (a tensor, a file), or in the "
            "Dataset, so that DataLoader workers do it beside the step."
        )
    if "deepcopy" in line.code:
        return (
            code
            + "copies in Python in each step: copy tensors with .detach().clone(), or only when the result is kept."
        )
    if "tolist" in line.code or "for " in line.code or "append" in line.code:
        return code + "builds its result in Python: do it with tensor operations, or once before the loop."
    return (
        code
        + "runs in Python in each step: move it out of the step (before the loop, into the Dataset and its workers, or into every Nth step), or express it in tensor operations."
    )


def _device(context: RuleContext) -> list[Draft]:
    """Device idle time while the main thread executes user or framework code, by line."""
    e = context.where()
    busy = f"""SELECT e.start_ns, e.start_ns + e.duration_ns AS end_ns FROM events e JOIN tracks t ON t.rank = e.rank AND t.track_id = e.track_id
WHERE {e} AND t.kind <> 'thread' AND e.category IN ('kernel', 'copy', 'fill', 'collective', 'instruction', 'dma')"""
    gaps = f"""SELECT reached_ns AS start_ns, start_ns - reached_ns AS duration_ns FROM (
  SELECT start_ns, max(end_ns) OVER (ORDER BY start_ns, end_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS reached_ns
  FROM ({busy})) WHERE start_ns > reached_ns"""
    # A wait, a fetch or a file call in the gap is another rule's: only gaps the main thread spends working count.
    waits = f"""SELECT e.start_ns, e.start_ns + e.duration_ns AS end_ns FROM events e
WHERE {e} AND e.track_id = {context.main_track} AND e.category IN ('sync', 'data', 'io', 'gc', 'compile')"""
    work = f"""SELECT g.start_ns, (g.duration_ns - coalesce((SELECT sum(least(w.end_ns, g.start_ns + g.duration_ns) - greatest(w.start_ns, g.start_ns))
    FROM ({waits}) w WHERE w.start_ns < g.start_ns + g.duration_ns AND w.end_ns > g.start_ns), 0))::BIGINT AS duration_ns
FROM ({gaps}) g"""
    evidence, row = context.evidence(
        "The device idles {idle_ns} per step while the host thread runs, in {gaps} gaps per step.",
        f"""SELECT (coalesce(sum(greatest(0, duration_ns)), 0) / {context.count})::BIGINT AS idle_ns,
  count(*) FILTER (WHERE duration_ns > 0) / {context.count} AS gaps FROM ({work})""",
    )
    idle_ns = min(row["idle_ns"], context.scope.mean_ns)
    if idle_ns < context.setting(RULE, "idle_share") * context.scope.mean_ns:
        return []
    lines = _gap_lines(context, gaps)
    top = context.code(next(iter(lines))) if lines else ""
    return [
        Draft(
            title="The device idles while Python runs",
            line_times_ns=lines,
            saving=Saving(low=idle_ns // 4, expected=round(0.7 * idle_ns), high=idle_ns),
            evidence=[evidence],
            advice=f"The host cannot launch work fast enough: {compile_advice(context)}, "
            "make larger batches, fuse small ops, and take Python work out of the step."
            + (f" Most idle time passes at `{top}`." if top else ""),
            affected=f"SELECT start_ns, greatest(0, duration_ns) AS duration_ns FROM ({work})",
            remaining_share=0.3,
            side="device",
            confidence="medium" if lines else "low",
            key="device",
        )
    ]


def _gap_lines(context: RuleContext, gaps: str) -> dict[int, int]:
    if "host_states" not in context.has:
        rows = context.rows(
            f"""SELECT o.site_id, (sum(least(o.start_ns + o.duration_ns, g.start_ns + g.duration_ns) - greatest(o.start_ns, g.start_ns)) / {context.count})::BIGINT AS time_ns
            FROM ({gaps}) g JOIN top_ops o ON o.start_ns < g.start_ns + g.duration_ns AND o.start_ns + o.duration_ns > g.start_ns
            WHERE {context.where("o")} AND o.site_id IS NOT NULL GROUP BY 1 ORDER BY time_ns DESC, site_id LIMIT 5"""
        )
    else:
        states = states_at(
            context.scope.rank, context.main_track, context.where("s"), "h.site_id IS NOT NULL"
        )
        rows = context.rows(
            f"""SELECT h.site_id, (sum(least(h.start_ns + h.duration_ns, g.start_ns + g.duration_ns) - greatest(h.start_ns, g.start_ns)) / {context.count})::BIGINT AS time_ns
            FROM ({gaps}) g JOIN ({states}) h ON h.start_ns < g.start_ns + g.duration_ns AND h.start_ns + h.duration_ns > g.start_ns
            GROUP BY 1 ORDER BY time_ns DESC, site_id LIMIT 5"""
        )
    return {row["site_id"]: row["time_ns"] for row in rows}


RULE = Rule(
    name="host_bound",
    title="Host-bound",
    specificity=1,
    needs=("ops",),
    check=check,
    settings=(
        Setting(
            "python_share",
            0.04,
            "Smallest part of the step a function spends in Python beyond the allowances (CPU runs)",
            "ours: above the 'medium' limit of severities",
        ),
        Setting(
            "op_allowance_ns",
            25_000,
            "Python time per outermost op that eager PyTorch costs anyway",
            "measured: module call, argument parsing and hooks cost 5 to 25 µs per op",
        ),
        Setting(
            "op_call_ns",
            5_000,
            "Python time per outermost op that is not counted as saved",
            "measured: the lower end of the 5 to 25 µs above",
        ),
        Setting(
            "visit_allowance_ns", 50_000, "Python time a line may take per step without being named", "ours"
        ),
        Setting(
            "idle_share",
            0.15,
            "Smallest part of the step in which the device idles while the host works",
            "TraceLens: idle over 15 %",
        ),
    ),
)
