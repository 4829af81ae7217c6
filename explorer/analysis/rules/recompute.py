"""Forward ops run a second time inside the backward pass."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.analysis.op_cost import device_time
from explorer.analysis.rule import Draft, Rule, Setting
from explorer.analysis.rule_context import RuleContext
from explorer.model.finding import Saving

FORWARD_ONLY = (
    "aten::linear", "aten::conv1d", "aten::conv2d", "aten::conv3d", "aten::layer_norm", "aten::batch_norm", "aten::group_norm",
    "aten::rms_norm", "aten::gelu", "aten::relu", "aten::silu", "aten::softmax", "aten::log_softmax", "aten::dropout",
    "aten::embedding", "aten::scaled_dot_product_attention", "aten::lstm", "aten::gru",
)  # fmt: skip
"""Ops that models call and no autograd formula does."""


def check(context: RuleContext) -> Sequence[Draft]:
    # By time, not by parent: Python functions may lie between the node and the op.
    inside = f"""SELECT e.event_id, e.track_id, e.start_ns, e.duration_ns, e.site_id, b.event_id AS node_id,
  b.start_ns AS node_start_ns, b.start_ns + b.duration_ns AS node_end_ns FROM (
  SELECT * FROM events e WHERE {context.where()} AND e.category = 'op' AND {context.in_texts("e.name", FORWARD_ONLY)}) e
ASOF JOIN (SELECT * FROM events b WHERE {context.where("b")} AND b.category = 'op' AND b.name LIKE '%Backward%' AND b.name NOT LIKE 'autograd::%') b
  ON e.track_id = b.track_id AND e.start_ns >= b.start_ns WHERE e.start_ns < b.start_ns + b.duration_ns"""
    on_device = "kernels" in context.has
    by_op = on_device and context.knows_device_waits
    if on_device:
        again = device_time(context, inside)
    else:
        # A node that triggers a recomputation begins with it, the checkpoint's own Python included; what follows is the
        # node's own gradient op.
        again = f"""SELECT n.start_ns, (least(n.end_ns, coalesce(o.start_ns, n.end_ns)) - n.start_ns)::BIGINT AS duration_ns, n.site_id, n.event_id
FROM (SELECT any_value(node_start_ns) AS start_ns, any_value(node_end_ns) AS end_ns, max(start_ns + duration_ns) AS last_ns,
  any_value(track_id) AS track_id, arg_max(site_id, duration_ns) AS site_id, min(event_id) AS event_id FROM ({inside}) GROUP BY node_id) n
ASOF LEFT JOIN (SELECT e.track_id, e.start_ns FROM events e WHERE {context.where()} AND e.category = 'op') o
  ON o.track_id = n.track_id AND o.start_ns >= n.last_ns"""
    evidence, row = context.evidence(
        "{ops} forward ops per step run again inside the backward pass and take {again_ns} per step"
        + (" on the device." if on_device else "."),
        f"""SELECT (SELECT count(*) FROM ({inside})) / {context.count} AS ops, (coalesce(sum(duration_ns), 0) / {context.count})::BIGINT AS again_ns
FROM ({again})""",
        inside,
    )
    again_ns = row["again_ns"]
    if again_ns < context.setting(RULE, "again_share") * context.scope.mean_ns:
        return []
    lines = context.costliest_lines(again)
    code = context.code(next(iter(lines), None))
    return [
        Draft(
            title="Activations are recomputed",
            line_times_ns=lines,
            saving=Saving(low=round(0.7 * again_ns), expected=again_ns, high=round(1.15 * again_ns)),
            evidence=[evidence],
            advice=(f"`{code}`: " if code else "")
            + "activation checkpointing pays compute for memory. Where memory allows, checkpoint fewer layers, or keep the expensive "
            "ops with a selective policy (torch.utils.checkpoint.create_selective_checkpoint_contexts).",
            affected=f"SELECT event_id, start_ns, duration_ns FROM ({inside})"
            if by_op
            else f"SELECT start_ns, duration_ns FROM ({again})",
            side="device" if on_device and not by_op else "host",
            confidence="high",
            caveats=["Memory use rises by the activations that are then kept."],
            key="" if lines else "recompute",
        )
    ]


RULE = Rule(
    name="recompute",
    title="Recomputation",
    specificity=3,
    needs=("ops",),
    check=check,
    settings=(
        Setting("again_share", 0.03, "Smallest part of the step", "ours: the 'medium' limit of severities"),
    ),
)
