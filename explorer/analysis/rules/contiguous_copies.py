"""Tensors are copied only to change their memory layout."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.analysis.op_cost import costs_by_function
from explorer.analysis.rule import Draft, Rule, Setting
from explorer.analysis.rule_context import RuleContext
from explorer.model.finding import Saving

_COPYING = ("aten::contiguous", "aten::clone", "aten::reshape", "aten::flatten", "aten::repeat", "aten::tile")


def check(context: RuleContext) -> Sequence[Draft]:
    # A reshape that copies has a clone inside; one that does not is free.
    copying = f"""{context.in_texts("o.name", _COPYING)} AND o.phase IS DISTINCT FROM 'data' AND (o.name IN ('aten::clone', 'aten::repeat')
  OR EXISTS (SELECT 1 FROM events c WHERE c.rank = o.rank AND c.parent_id = o.event_id AND c.name = 'aten::clone'))"""
    drafts = []
    for cost in costs_by_function(
        context,
        copying,
        "{calls} ops per step copy tensors to another memory layout and take {time_ns} per step.",
        context.setting(RULE, "copy_share"),
    ):
        code = context.code(next(iter(cost.line_times_ns), None))
        expected = cost.time_ns
        drafts.append(
            Draft(
                title=f"Layout copies in {cost.place}",
                line_times_ns=cost.line_times_ns,
                saving=Saving(low=expected // 2, expected=expected, high=expected),
                evidence=[cost.evidence],
                advice=(f"`{code}` copies the whole tensor: " if code else "")
                + "keep one layout through the model (choose dimensions so that no transpose is needed, channels_last for "
                "convolutions), drop .contiguous() where the next op takes strides, and use view instead of reshape.",
                affected=cost.selection,
                remaining_share=0.0,
                side=cost.side,
                confidence="medium",
                caveats=["The op that follows may run slower on a strided tensor."],
                key=cost.place,
            )
        )
    return drafts


RULE = Rule(
    name="contiguous_copies",
    title="Layout copies",
    specificity=3,
    needs=("ops",),
    check=check,
    settings=(
        Setting(
            "copy_share",
            0.05,
            "Smallest part of the step in one function",
            "ours: one copy after attention is usual and costs less",
        ),
    ),
)
