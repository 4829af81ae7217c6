"""Operators on Neuron tensors that silently ran on the host: they have no device rows."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.analysis.neuron.rule_scope import bound
from explorer.analysis.rule import Draft, Rule, Setting
from explorer.analysis.rule_context import RuleContext

NO_WORK = (
    "view", "_unsafe_view", "reshape", "_reshape_alias", "t", "transpose", "permute", "expand", "expand_as", "slice", "select", "narrow",
    "squeeze", "unsqueeze", "as_strided", "alias", "detach", "empty", "empty_like", "empty_strided", "split", "chunk", "unbind", "unfold",
    "flatten", "movedim", "diagonal", "size", "stride", "is_nonzero", "lift_fresh", "resolve_conj", "resolve_neg", "result_type",
)  # fmt: skip
"""Operators that only change how a tensor is seen: no device work is expected of them."""


def check(context: RuleContext) -> Sequence[Draft]:
    rank = context.scope.rank
    flowing = "json_extract_string(e.attributes, '$.flow_id') IS NOT NULL"
    framework = "json_extract_string(e.attributes, '$.trace_event_source') = 'framework'"
    leaf = f"""e.category = 'op' AND {framework}
  AND NOT EXISTS (SELECT 1 FROM events c WHERE c.rank = e.rank AND c.parent_id = e.event_id AND c.category IN ('op', 'runtime'))"""
    works = f"NOT ({context.in_texts('regexp_replace(e.name, $$^.*::$$, $$$$)', NO_WORK)})"
    known = context.row(
        f"SELECT count(*) AS n FROM events e WHERE e.rank = {rank} AND e.category = 'op' AND {flowing}"
    )
    if not known["n"]:
        return []
    fallbacks = f"""SELECT e.event_id, e.start_ns, e.duration_ns, e.site_id, e.name FROM events e
WHERE {context.where()} AND {leaf} AND {works} AND NOT ({flowing})"""
    evidence, row = context.evidence(
        "{calls} operator calls per step have no device work although others do ({fallback_ns} per step); the longest is {name}.",
        f"""SELECT count(*) / {context.count} AS calls, (coalesce(sum(duration_ns), 0) / {context.count})::BIGINT AS fallback_ns,
  arg_max(name, duration_ns) AS name FROM ({fallbacks})""",
        f"SELECT event_id FROM ({fallbacks}) ORDER BY duration_ns DESC, event_id",
    )
    if row["fallback_ns"] < context.setting(RULE, "fallback_share") * context.scope.mean_ns:
        return []
    lines = context.rows(
        f"""SELECT site_id, (sum(duration_ns) / {context.count})::BIGINT AS ns FROM ({fallbacks})
        WHERE site_id IS NOT NULL GROUP BY site_id ORDER BY ns DESC, site_id LIMIT 5"""
    )
    return [
        Draft(
            title=f"{row['name']} ran on the host, not on the NeuronCore",
            line_times_ns={item["site_id"]: item["ns"] for item in lines},
            saving=bound(row["fallback_ns"], 0.7, 0.2),
            evidence=[evidence],
            advice="The operator has no Neuron implementation for these arguments, so its inputs were copied to the host and back: use one that has, or do this part once outside the step.",
            affected=fallbacks,
            side="host",
            confidence="medium",
            caveats=("The profiler does not mark fallbacks; this is told from the missing device work.",),
        )
    ]


RULE = Rule(
    name="neuron_host_fallback",
    title="Fallback to the host",
    specificity=3,
    needs=("neuron_system", "ops"),
    check=check,
    settings=(
        Setting(
            "fallback_share",
            0.01,
            "Smallest part of the step in such operators",
            "half a percent is the report's own floor; twice that here",
        ),
    ),
)
