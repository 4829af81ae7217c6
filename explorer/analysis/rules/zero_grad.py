"""Gradients are filled with zeros instead of dropped."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.analysis.rule import Draft, Rule, Setting
from explorer.analysis.rule_context import RuleContext
from explorer.model.finding import Saving

_FILLS = ("aten::zero_", "aten::_foreach_zero_")


def check(context: RuleContext) -> Sequence[Draft]:
    if not context.holds(f"events > 0 AND {context.in_texts('name', _FILLS)}"):
        return []
    fills = f"""SELECT o.event_id, o.start_ns, o.duration_ns, o.executing_site_id AS site_id FROM top_ops o
LEFT JOIN sites s ON s.site_id = o.executing_site_id
WHERE {context.where("o")} AND {context.in_texts("o.name", _FILLS)}
  AND (o.parent_name LIKE 'Optimizer.zero_grad#%' OR s.code LIKE '%zero_grad%' OR s.code LIKE '%.grad.zero_%')"""
    # Into a gradient that exists the first backward pass must add; into one that does not it just moves.
    adds = f"""SELECT e.event_id, e.start_ns, e.duration_ns FROM events e JOIN events p ON p.rank = e.rank AND p.event_id = e.parent_id
WHERE {context.where()} AND e.category = 'op' AND e.name = 'aten::add_' AND p.name = 'torch::autograd::AccumulateGrad'"""
    evidence, row = context.evidence(
        "Filling gradients with zeros takes {fill_ns} per step, adding the new gradients to them {add_ns}.",
        f"""SELECT (SELECT coalesce(sum(duration_ns), 0) / {context.count} FROM ({fills}))::BIGINT AS fill_ns,
  (SELECT coalesce(sum(duration_ns), 0) / {context.count} FROM ({adds}))::BIGINT AS add_ns""",
        fills,
    )
    if not row["fill_ns"]:
        return []
    time_ns = row["fill_ns"] + row["add_ns"]
    if time_ns < context.setting(RULE, "fill_share") * context.scope.mean_ns:
        return []
    times = context.costliest_lines(fills)
    return [
        Draft(
            title="Gradients are zeroed, not dropped",
            line_times_ns=times,
            saving=Saving(low=row["fill_ns"], expected=time_ns, high=round(1.5 * time_ns)),
            evidence=[evidence],
            advice=(f"`{context.code(next(iter(times), None))}`: " if times else "")
            + "call optimizer.zero_grad(set_to_none=True), the default: gradients are then created by the backward pass "
            "without a fill before and an addition after.",
            affected=f"SELECT event_id, start_ns, duration_ns FROM ({fills}) UNION ALL SELECT event_id, start_ns, duration_ns FROM ({adds})",
            caveats=["Code that reads .grad must then expect None."],
        )
    ]


RULE = Rule(
    name="zero_grad",
    title="Gradients zeroed instead of None",
    specificity=3,
    needs=("ops",),
    check=check,
    settings=(Setting("fill_share", 0.01, "Smallest part of the step", "ours: below 1 % nothing is gained"),),
)
