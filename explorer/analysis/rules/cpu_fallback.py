"""Ops that compute on the host although the program has an accelerator."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.analysis.op_names import CONVOLUTION, MATMUL, POINTWISE, REDUCTION, SOFTMAX, listed
from explorer.analysis.rule import Draft, Rule, Setting
from explorer.analysis.rule_context import RuleContext
from explorer.model.finding import Saving

_COMPUTE = listed(MATMUL | CONVOLUTION | POINTWISE | REDUCTION | SOFTMAX)


def check(context: RuleContext) -> Sequence[Draft]:
    # An op on a device returns once its kernel is enqueued: one that computes for long and enqueues nothing ran on the host.
    long_ns = context.setting(RULE, "long_op_ns")
    ops = f"""SELECT o.event_id, o.start_ns, o.duration_ns, o.name, o.executing_site_id AS site_id FROM top_ops o
WHERE {context.where("o")} AND o.phase IS DISTINCT FROM 'data' AND o.duration_ns >= {long_ns:.0f}
  AND ({context.in_texts("o.name", _COMPUTE)} OR o.name LIKE '%_cpu_fallback%' OR o.name LIKE '%fallback%')
  AND NOT EXISTS (SELECT 1 FROM events c WHERE c.rank = o.rank AND c.track_id = o.track_id AND c.category IN ('runtime', 'sync')
    AND c.start_ns >= o.start_ns AND c.start_ns < o.start_ns + o.duration_ns)"""
    evidence, row = context.evidence(
        "{ops} ops per step compute on the host without using the device and take {time_ns} per step.",
        f"SELECT count(*) / {context.count} AS ops, (coalesce(sum(duration_ns), 0) / {context.count})::BIGINT AS time_ns FROM ({ops})",
        f"SELECT event_id FROM ({ops}) ORDER BY duration_ns DESC, event_id",
    )
    time_ns = row["time_ns"]
    if time_ns < context.setting(RULE, "fallback_share") * context.scope.mean_ns:
        return []
    lines = context.costliest_lines(ops)
    names = context.rows(
        f"SELECT name FROM ({ops}) GROUP BY name ORDER BY sum(duration_ns) DESC, name LIMIT 3"
    )
    return [
        Draft(
            title="Ops run on the host beside an accelerator",
            line_times_ns=lines,
            saving=Saving(low=time_ns // 3, expected=round(0.8 * time_ns), high=time_ns),
            evidence=[evidence],
            advice=f"Move their inputs to the device ({', '.join(item['name'] for item in names)}): create the tensors there, or call .to(device) once "
            "before the loop. If the device lacks the op, replace it by supported ones.",
            affected=f"SELECT event_id, start_ns, duration_ns FROM ({ops})",
            remaining_share=0.2,
            confidence="medium",
            key="" if lines else "fallback",
        )
    ]


RULE = Rule(
    name="cpu_fallback",
    title="Silent CPU fallback",
    specificity=3,
    needs=("kernels", "ops"),
    check=check,
    settings=(
        Setting(
            "long_op_ns",
            100_000,
            "Shortest op that must be computing, not just calling",
            "an eager call that enqueues a kernel takes 5 to 50 µs",
        ),
        Setting(
            "fallback_share", 0.03, "Smallest part of the step", "ours: the 'medium' limit of severities"
        ),
    ),
)
