"""Convolutions of fixed shapes run without the search for their fastest algorithm."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.analysis.op_cost import device_time
from explorer.analysis.rule import Draft, NotChecked, Rule, Setting
from explorer.analysis.rule_context import RuleContext
from explorer.model.finding import Saving

_CONVOLUTIONS = ("aten::conv1d", "aten::conv2d", "aten::conv3d", "aten::conv_transpose1d", "aten::conv_transpose2d",
                 "aten::conv_transpose3d", "aten::convolution")  # fmt: skip


def check(context: RuleContext) -> Sequence[Draft] | NotChecked:
    on = context.engine.reader.manifests[context.scope.rank].host.get("cudnn_benchmark")
    if not isinstance(on, bool):
        return NotChecked(
            RULE.name,
            "the run does not say whether torch.backends.cudnn.benchmark was on (only our own capture does)",
        )
    if on:
        return []
    convolutions = f"""SELECT o.event_id, o.step, o.start_ns, o.duration_ns, o.executing_site_id AS site_id, e.shapes
FROM top_ops o JOIN events e ON e.rank = o.rank AND e.event_id = o.event_id
WHERE {context.where("o")} AND {context.in_texts("o.name", _CONVOLUTIONS)}"""
    seen = context.row(
        f"""SELECT count(*) AS kinds, count(*) FILTER (steps = all_steps) AS fixed, any_value(all_steps) AS steps FROM (
          SELECT site_id, shapes, count(DISTINCT step) AS steps,
            (SELECT count(DISTINCT step) FROM ({convolutions}) WHERE shapes IS NOT NULL) AS all_steps
          FROM ({convolutions}) WHERE shapes IS NOT NULL GROUP BY site_id, shapes)"""
    )
    if not seen["kinds"]:
        return []
    if seen["steps"] < 2:
        return NotChecked(
            RULE.name, "shapes were recorded in one step only: whether they are fixed is not known"
        )
    if seen["fixed"] < seen["kinds"]:
        # With new shapes the search would start anew each time.
        return []
    backward = f"""SELECT o.event_id, o.start_ns, o.duration_ns, o.site_id FROM top_ops o
WHERE {context.where("o")} AND o.name LIKE 'autograd::engine::evaluate_function: Convolution%'"""
    ops = f"SELECT event_id, start_ns, duration_ns, site_id FROM ({convolutions}) UNION ALL ({backward})"
    work = device_time(context, ops)
    evidence, row = context.evidence(
        "Convolutions of {kinds} fixed shapes take {time_ns} of the device per step, and torch.backends.cudnn.benchmark is off.",
        f"""SELECT (SELECT count(DISTINCT shapes) FROM ({convolutions}) WHERE shapes IS NOT NULL) AS kinds,
  (coalesce(sum(duration_ns), 0) / {context.count})::BIGINT AS time_ns FROM ({work})""",
        f"SELECT event_id FROM ({convolutions})",
    )
    time_ns = row["time_ns"]
    if time_ns < context.setting(RULE, "convolution_share") * context.scope.mean_ns:
        return []
    lines = context.costliest_lines(work)
    gained = context.setting(RULE, "gained_share")
    expected = round(gained * time_ns)
    return [
        Draft(
            title="Convolutions run without cudnn.benchmark",
            line_times_ns=lines,
            saving=Saving(0, expected, 4 * expected),
            evidence=[evidence],
            advice="Set torch.backends.cudnn.benchmark = True before the first step: cuDNN (MIOpen) then times its algorithms once for each "
            "shape and keeps the fastest.",
            affected=f"SELECT event_id, start_ns, duration_ns FROM ({work})",
            remaining_share=1 - gained,
            side="device",
            confidence="low",
            caveats=[
                "Nothing in the run says which algorithm would win: compare the step before and after.",
                "Leave it off where inputs change their shape, and where results must be the same from run to run.",
            ],
            key="" if lines else "convolutions",
        )
    ]


RULE = Rule(
    name="cudnn_benchmark",
    title="cudnn.benchmark off with fixed shapes",
    specificity=1,
    needs=("kernels", "ops", "shapes"),
    check=check,
    settings=(
        Setting(
            "convolution_share", 0.2, "Smallest part of the step that convolutions take on the device", "ours"
        ),
        Setting(
            "gained_share",
            0.05,
            "Part of their time that a better algorithm saves",
            "ours, not measured: heuristics mostly choose well; 0 to 20 % happens",
        ),
    ),
)
