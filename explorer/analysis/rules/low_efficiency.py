"""Ops that take much longer than the device's peaks allow, and ops that only move memory."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.analysis.op_cost import device_time
from explorer.analysis.rule import Draft, NotChecked, Rule, Setting
from explorer.analysis.rule_context import RuleContext
from explorer.model.finding import Saving

_HEAVY = "('matmul', 'convolution', 'attention')"


def check(context: RuleContext) -> Sequence[Draft] | NotChecked:
    # Shapes are recorded in some steps only: what they say of a call holds for its line and op in all steps.
    known = f"""SELECT * FROM op_roofline r WHERE r.rank = {context.scope.rank} AND r.peak_flops > 0 AND r.memory_bandwidth > 0
  AND r.time_ns >= {context.setting(RULE, "long_ns"):.0f}"""
    if not context.row(f"SELECT count(*) AS n FROM ({known})")["n"]:
        return NotChecked(RULE.name, "no long op has both known work and a device whose peaks are known")
    return [*_below_the_roof(context, known), *_memory_bound(context, known)]


def _below_the_roof(context: RuleContext, known: str) -> list[Draft]:
    """Products that reach a small part of what the device can do with them."""
    reachable = context.setting(RULE, "reachable_share")
    slow = f"""SELECT name, site_id FROM ({known}) WHERE family IN {_HEAVY} AND site_id IS NOT NULL
GROUP BY ALL HAVING sum(attainable_ns) / sum(time_ns) < {context.setting(RULE, "efficiency")}"""
    work = device_time(context, _ops(context, slow))
    evidence, row = context.evidence(
        "{calls} matrix products, convolutions or attentions per step reach {efficiency} of what the device can do with them and take {time_ns} per step.",
        _numbers(context, known, slow),
        f"SELECT event_id FROM ({work}) ORDER BY duration_ns DESC, event_id",
    )
    if row["time_ns"] < context.setting(RULE, "slow_share") * context.scope.mean_ns:
        return []
    lines = context.costliest_lines(work)
    kept = min(1.0, float(row["efficiency"]) / reachable)
    saved_ns = round((1 - kept) * row["time_ns"])
    return [
        Draft(
            title="Products far below the device's peak",
            line_times_ns=lines,
            saving=Saving(saved_ns // 4, saved_ns // 2, saved_ns),
            evidence=[evidence],
            advice=_at(context, lines)
            + "larger batches or fewer, larger products; dimensions that are multiples of 8 (16 bit) or 16 (8 bit); contiguous inputs; "
            "bfloat16 or TF32 where it is safe; torch.compile(mode='max-autotune') to choose another kernel.",
            affected=f"SELECT event_id, start_ns, duration_ns FROM ({work})",
            remaining_share=(1 + kept) / 2,
            side="device",
            confidence="low",
            caveats=[
                "Small or thin products cannot reach the peak, whatever the kernel: half of the distance is expected."
            ],
            key="products",
        )
    ]


def _memory_bound(context: RuleContext, known: str) -> list[Draft]:
    """Ops whose time is that of moving their operands: only fewer bytes make them faster."""
    bound = f"""SELECT DISTINCT name, site_id FROM ({known})
WHERE family NOT IN {_HEAVY} AND site_id IS NOT NULL AND size_bytes / memory_bandwidth > flops / peak_flops"""
    work = device_time(context, _ops(context, bound))
    evidence, row = context.evidence(
        "{calls} ops per step only move memory (at {efficiency} of the device's bandwidth) and take {time_ns} per step.",
        _numbers(context, known, bound),
        f"SELECT event_id FROM ({work}) ORDER BY duration_ns DESC, event_id",
    )
    if row["time_ns"] < context.setting(RULE, "moving_share") * context.scope.mean_ns:
        return []
    lines = context.costliest_lines(work)
    saved = context.setting(RULE, "fused_share")
    saved_ns = round(saved * row["time_ns"])
    return [
        Draft(
            title="Much of the step only moves memory",
            line_times_ns=lines,
            saving=Saving(0, saved_ns, round(0.75 * row["time_ns"])),
            evidence=[evidence],
            advice=_at(context, lines)
            + "let torch.compile fuse these ops with their neighbours, use fused ones (F.scaled_dot_product_attention, F.rms_norm, fused "
            "optimizers), and keep activations in bfloat16: half the bytes, half the time.",
            affected=f"SELECT event_id, start_ns, duration_ns FROM ({work})",
            remaining_share=1 - saved,
            side="device",
            confidence="low",
            caveats=["What can be fused depends on the ops around them."],
            key="moving",
        )
    ]


def _ops(context: RuleContext, chosen: str) -> str:
    """SQL for all calls of the chosen ops (name, site_id), in steps with shapes and without."""
    return f"""SELECT e.event_id, e.start_ns, e.duration_ns, e.site_id FROM events e JOIN ({chosen}) c
ON c.name = e.name AND c.site_id = e.site_id WHERE {context.where()} AND e.category = 'op'"""


def _numbers(context: RuleContext, known: str, chosen: str) -> str:
    """SQL for one row about the chosen ops: calls and device time per step, and what part of the attainable they reach."""
    ops = _ops(context, chosen)
    return f"""SELECT (SELECT count(*) FROM ({ops})) / {context.count} AS calls,
  (coalesce(sum(duration_ns), 0) / {context.count})::BIGINT AS time_ns,
  (SELECT round(sum(attainable_ns) / sum(time_ns), 3) FROM ({known}) SEMI JOIN ({chosen}) USING (name, site_id)) AS efficiency
FROM ({device_time(context, ops)})"""


def _at(context: RuleContext, lines: dict[int, int]) -> str:
    code = context.code(next(iter(lines), None))
    return f"`{code}`: " if code else ""


RULE = Rule(
    name="low_efficiency",
    title="Low roofline efficiency",
    specificity=1,
    needs=("kernels", "ops", "shapes"),
    check=check,
    settings=(
        Setting(
            "long_ns",
            20_000,
            "Shortest op on the device that is judged",
            "shorter ones are bound by their launch (tiny_ops)",
        ),
        Setting(
            "efficiency",
            0.3,
            "Products below this part of what is attainable are slow",
            "ours: a good kernel reaches 0.6 to 0.9",
        ),
        Setting(
            "reachable_share",
            0.7,
            "Part of what is attainable that a good kernel reaches",
            "ours: cuBLAS on large products, NVIDIA's and AMD's published figures",
        ),
        Setting(
            "slow_share",
            0.1,
            "Smallest part of the step in slow products",
            "ours: the 'high' limit of severities",
        ),
        Setting(
            "moving_share",
            0.25,
            "Smallest part of the step in ops that only move memory",
            "ours: a compiled transformer spends less",
        ),
        Setting(
            "fused_share",
            0.4,
            "Part of their time that fusing and 16 bit save",
            "ours: one pass of two or three",
        ),
    ),
)
