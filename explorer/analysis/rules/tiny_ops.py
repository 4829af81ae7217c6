"""Many tiny ops: calling them costs more than what they compute."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.analysis.code_loop import CodeLines, CodeLoop
from explorer.analysis.launch_advice import compile_advice, graphs, is_jax
from explorer.analysis.rule import Draft, Rule, Setting
from explorer.analysis.rule_context import RuleContext
from explorer.analysis.rule_sql import union_ns
from explorer.analysis.rules.row_loop import affected_by_loop
from explorer.model.finding import Saving


def check(context: RuleContext) -> Sequence[Draft]:
    drafts = _loops(context) if {"host_states", "ops"} <= context.has else []
    if "kernels" in context.has:
        drafts += _kernels(context)
    return drafts


def _loops(context: RuleContext) -> list[Draft]:
    """Loops in user code whose passes call a few small ops each: over parameters, time steps, small tensors."""
    passes = context.setting(RULE, "passes")
    drafts: list[Draft] = []
    taken: set[int] = set()
    for loop in sorted(CodeLines(context).loops(passes), key=lambda item: (-item.passes, item.header.line)):
        if taken & {line.site_id for line in loop.lines}:
            continue
        ops = sum(line.top_ops for line in loop.lines)
        if ops < passes or ops > context.setting(RULE, "ops_per_pass") * loop.passes:
            continue
        if sum(line.op_ns for line in loop.lines) > context.setting(RULE, "short_op_ns") * ops:
            continue
        if draft := _loop_draft(context, loop):
            taken |= {line.site_id for line in loop.lines}
            drafts.append(draft)
    return drafts


def _loop_draft(context: RuleContext, loop: CodeLoop) -> Draft | None:
    sites = [line.site_id for line in loop.lines]
    affected = affected_by_loop(context, sites)
    evidence, row = context.evidence(
        "The loop calls {top_ops} ops per step, {op_ns} in all, and takes {loop_ns} per step.",
        f"""SELECT (union_ns / {context.count})::BIGINT AS loop_ns, w.* FROM ({union_ns(affected)}),
  (SELECT sum(top_ops) / {context.count} AS top_ops, (sum(op_ns) / {context.count})::BIGINT AS op_ns FROM line_steps l
   WHERE {context.where("l")} AND l.track_id = {context.main_track} AND {context.in_sites("l.site_id", sites)}) w""",
    )
    loop_ns = row["loop_ns"]
    if loop_ns < context.setting(RULE, "loop_share") * context.scope.mean_ns:
        return None
    expected = round(context.setting(RULE, "saved_share") * loop_ns)
    worst = sorted(loop.body, key=lambda line: (-line.host_ns, line.line))
    lines = {line.site_id: round(line.host_ns) for line in worst[:3]}
    lines.setdefault(loop.header.site_id, round(loop.header.host_ns))
    return Draft(
        title=f"Many tiny ops in the loop at {context.place(loop.header.site_id)}",
        line_times_ns=lines,
        saving=Saving(low=round(0.6 * expected), expected=expected, high=loop_ns),
        evidence=[evidence],
        advice=_advice(loop),
        affected=affected,
        remaining_share=1 - expected / loop_ns,
    )


def _advice(loop: CodeLoop) -> str:
    text = " ".join(line.code for line in loop.lines)
    if "param" in loop.header.code or ".grad" in text:
        return (
            f"`{loop.header.code}` calls small ops parameter by parameter: use torch._foreach_* on the whole list, or what is "
            "built on it (torch.nn.utils.clip_grad_norm_, optimizers with fused=True, swa_utils.AveragedModel)."
        )
    return (
        f"`{loop.header.code}` calls small ops one by one: stack the tensors and call each op once, use torch._foreach_* or "
        "torch.vmap, a module that runs the loop itself (nn.LSTM), or torch.compile."
    )


def _kernels(context: RuleContext) -> list[Draft]:
    """Launch-bound device: short kernels with idle time between them."""
    kernels = f"""SELECT e.event_id, e.start_ns, e.duration_ns, e.site_id, e.launch_id FROM events e JOIN tracks t ON t.rank = e.rank AND t.track_id = e.track_id
WHERE {context.where()} AND t.kind <> 'thread' AND e.category = 'kernel'"""
    short = context.setting(RULE, "short_kernel_ns")
    gap = f"""SELECT start_ns, duration_ns, event_id, site_id, greatest(0, start_ns - coalesce(max(start_ns + duration_ns) OVER (
    ORDER BY start_ns, event_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), start_ns)) AS gap_ns FROM ({kernels})"""
    # Idle time before a short kernel is launch cost as long as a launch explains it.
    longest = context.setting(RULE, "launch_ns")
    tiny = f"SELECT start_ns - least(gap_ns, {longest:.0f})::BIGINT AS start_ns, least(gap_ns, {longest:.0f})::BIGINT AS duration_ns, event_id, site_id FROM ({gap}) WHERE duration_ns < {short:.0f}"
    evidence, row = context.evidence(
        "{tiny} of {kernels} kernels per step are short, and the device idles {idle_ns} per step just before them.",
        f"""SELECT count(*) / {context.count} AS tiny, (SELECT count(*) FROM ({kernels})) / {context.count} AS kernels,
  (coalesce(sum(duration_ns), 0) / {context.count})::BIGINT AS idle_ns FROM ({tiny})""",
        f"SELECT event_id FROM ({tiny}) ORDER BY duration_ns DESC, event_id",
    )
    idle_ns = min(row["idle_ns"], context.scope.mean_ns)
    if (
        row["tiny"] < context.setting(RULE, "tiny_kernels")
        or idle_ns < context.setting(RULE, "loop_share") * context.scope.mean_ns
    ):
        return []
    lines = context.costliest_lines(tiny, most=5)
    return [
        Draft(
            title="Launch-bound: many tiny kernels",
            line_times_ns=lines,
            saving=Saving(low=idle_ns // 3, expected=round(0.7 * idle_ns), high=idle_ns),
            evidence=[evidence],
            advice=_fuse_or_replay(context),
            affected=f"SELECT start_ns, duration_ns FROM ({tiny})",
            remaining_share=0.3,
            side="device",
            confidence="medium",
            key="kernels",
        )
    ]


def _fuse_or_replay(context: RuleContext) -> str:
    if is_jax(context):
        return f"Fuse them: {compile_advice(context)}, larger batches."
    replayed = graphs(context)
    how = f"torch.compile(mode='reduce-overhead'), {replayed}" if replayed else "torch.compile"
    return f"Fuse or replay them: {how}, fused or foreach optimizers, larger batches."


RULE = Rule(
    name="tiny_ops",
    title="Many tiny ops or kernels",
    specificity=2,
    needs=("ops",),
    check=check,
    settings=(
        Setting("passes", 16, "Fewest passes per step of a loop", "ours: as row_loop"),
        Setting(
            "ops_per_pass",
            12,
            "Most ops per pass: above it the loop runs whole layers, not single ops",
            "ours",
        ),
        Setting(
            "short_op_ns",
            25_000,
            "Longest mean op that counts as tiny",
            "measured: an eager op on CPU costs 3 to 10 µs with nothing to compute",
        ),
        Setting("loop_share", 0.03, "Smallest part of the step", "ours: the 'medium' limit of severities"),
        Setting(
            "saved_share",
            0.7,
            "Part of the loop's time that one call over all tensors saves",
            "measured on the planted programs",
        ),
        Setting(
            "short_kernel_ns",
            10_000,
            "Longest kernel that counts as tiny",
            "TraceLens: kernels under 10 µs are short",
        ),
        Setting("tiny_kernels", 50, "Fewest tiny kernels per step", "ours"),
        Setting(
            "launch_ns",
            20_000,
            "Idle time before a kernel that its launch can explain",
            "a launch with its op costs 5 to 20 µs on the host",
        ),
    ),
)
