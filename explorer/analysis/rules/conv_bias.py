"""A convolution adds a bias that the batch norm after it takes away again."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.analysis.rule import Draft, Rule, Setting
from explorer.analysis.rule_context import RuleContext
from explorer.analysis.shape_text import listed
from explorer.model.finding import Saving

_CONVOLUTIONS = ("aten::conv1d", "aten::conv2d", "aten::conv3d")


def check(context: RuleContext) -> Sequence[Draft]:
    if not context.holds(f"shapes > 0 AND {context.in_texts('name', _CONVOLUTIONS)}"):
        return []
    sequence = f"""SELECT o.event_id, o.name, o.start_ns, o.duration_ns, o.executing_site_id AS site_id, e.shapes,
  lead(o.name) OVER (PARTITION BY o.track_id ORDER BY o.start_ns) AS next_name
FROM top_ops o JOIN events e ON e.rank = o.rank AND e.event_id = o.event_id WHERE {context.where("o")} AND o.phase IS DISTINCT FROM 'backward'"""
    rows = context.rows(
        f"SELECT DISTINCT shapes FROM ({sequence}) WHERE {context.in_texts('name', _CONVOLUTIONS)} AND next_name LIKE 'aten::batch_norm%' AND shapes IS NOT NULL"
    )
    biased = sorted(row["shapes"] for row in rows if _has_bias(row["shapes"]))
    if not biased:
        return []
    pairs = f"""SELECT * FROM ({sequence}) WHERE {context.in_texts("name", _CONVOLUTIONS)} AND next_name LIKE 'aten::batch_norm%'
  AND {context.in_texts("shapes", biased)}"""
    evidence, row = context.evidence(
        "{convolutions} convolutions per step add a bias just before a batch norm and take {time_ns} per step.",
        f"SELECT count(*) / {context.count} AS convolutions, (coalesce(sum(duration_ns), 0) / {context.count})::BIGINT AS time_ns FROM ({pairs})",
        f"SELECT event_id FROM ({pairs})",
    )
    lines = context.costliest_lines(pairs)
    expected = round(context.setting(RULE, "bias_share") * row["time_ns"])
    return [
        Draft(
            title="Convolution bias before batch norm",
            line_times_ns=lines,
            saving=Saving(low=0, expected=expected, high=3 * expected),
            evidence=[evidence],
            advice="Build these convolutions with bias=False: the batch norm subtracts the mean, bias included.",
            affected=f"SELECT event_id, start_ns, duration_ns FROM ({pairs})",
            remaining_share=1 - context.setting(RULE, "bias_share"),
            key="" if lines else "bias",
        )
    ]


def _has_bias(shapes: str) -> bool:
    operands = listed(shapes)
    return len(operands) > 2 and isinstance(operands[2], list) and len(operands[2]) == 1


RULE = Rule(
    name="conv_bias",
    title="Convolution bias before batch norm",
    specificity=2,
    needs=("shapes",),
    check=check,
    settings=(
        Setting(
            "bias_share",
            0.05,
            "Part of such a convolution that its bias costs",
            "ours: one more pass over the output, mostly fused on GPUs",
        ),
    ),
)
