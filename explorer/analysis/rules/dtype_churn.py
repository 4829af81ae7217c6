"""Tensors are cast from one type to another and back."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.analysis.op_cost import costs_by_function
from explorer.analysis.rule import Draft, Rule, Setting
from explorer.analysis.rule_context import RuleContext
from explorer.model.finding import Saving


def check(context: RuleContext) -> Sequence[Draft]:
    if not context.holds("name = 'aten::_to_copy'"):
        return []
    casts = """(o.name IN ('aten::_to_copy') OR (o.name IN ('aten::to', 'aten::type_as') AND EXISTS (
  SELECT 1 FROM events c WHERE c.rank = o.rank AND c.parent_id = o.event_id AND c.name = 'aten::_to_copy')))
  AND o.phase IS DISTINCT FROM 'data'"""
    drafts = []
    for cost in costs_by_function(
        context,
        casts,
        "{calls} casts per step take {time_ns} per step.",
        context.setting(RULE, "cast_share"),
    ):
        if cost.calls < context.setting(RULE, "casts"):
            continue
        kinds = _types(context, list(cost.line_times_ns))
        if len(kinds) < 2:
            # Casts that all start from one type go one way, which mixed precision needs.
            continue
        code = context.code(next(iter(cost.line_times_ns), None))
        expected = round(0.9 * cost.time_ns)
        drafts.append(
            Draft(
                title=f"Casts there and back in {cost.place}",
                line_times_ns=cost.line_times_ns,
                saving=Saving(low=expected // 2, expected=expected, high=cost.time_ns),
                evidence=[cost.evidence],
                advice=(f"`{code}`: " if code else "")
                + "choose one type for the activations and cast at the edges of the model only; with autocast, leave single "
                "casts out and keep whole regions in one type.",
                affected=cost.selection,
                remaining_share=0.1,
                side=cost.side,
                key=cost.place,
            )
        )
    return drafts


def _types(context: RuleContext, sites: list[int]) -> set[str]:
    """Source types of the casts at these lines, as far as they were recorded."""
    rows = context.rows(
        f"""SELECT DISTINCT json_extract_string(TRY_CAST(e.dtypes AS JSON), '$[0]') AS kind FROM events e
        LEFT JOIN stacks k ON k.stack_id = e.stack_id AND k.depth = 0
        WHERE e.rank = {context.scope.rank} AND e.name = 'aten::_to_copy' AND e.dtypes IS NOT NULL
          AND {context.in_sites("coalesce(k.site_id, e.site_id)", sites)}"""
    )
    return {row["kind"] for row in rows if row["kind"]}


RULE = Rule(
    name="dtype_churn",
    title="Dtype churn",
    specificity=3,
    needs=("ops", "dtypes"),
    check=check,
    settings=(
        Setting(
            "cast_share",
            0.03,
            "Smallest part of the step in one function",
            "ours: the 'medium' limit of severities",
        ),
        Setting("casts", 2, "Fewest casts per step in one function", "there and back"),
    ),
)
