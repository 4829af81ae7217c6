"""Compiled graphs are loaded, or switched, inside the steps: something keeps compiling."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.analysis.neuron.rule_scope import bound
from explorer.analysis.rule import Draft, Rule, Setting
from explorer.analysis.rule_context import RuleContext

NAMES = ("model_load", "nrt_load", "nrt_model_switch")


def check(context: RuleContext) -> Sequence[Draft]:
    if not context.scope.numbers:
        return []
    loads = f"""SELECT e.event_id, e.start_ns, e.duration_ns, e.site_id, e.op_id, e.name FROM events e
WHERE {context.scope.where_all("e")} AND {context.in_texts("e.name", NAMES)} AND e.step > {min(context.scope.all_numbers)}"""
    evidence, row = context.evidence(
        "{loads} loads of compiled graphs inside steps after the first, {load_ns} per step.",
        f"""SELECT count(*) AS loads, (coalesce(sum(duration_ns), 0) / {max(1, len(context.scope.all_numbers) - 1)})::BIGINT AS load_ns FROM ({loads})""",
        f"SELECT event_id FROM ({loads}) ORDER BY duration_ns DESC, event_id",
    )
    if not row["loads"] or row["load_ns"] < context.setting(RULE, "load_share") * context.scope.mean_ns:
        return []
    lines = context.rows(
        f"""SELECT coalesce(x.site_id, o.site_id) AS site_id, (sum(x.duration_ns) / {context.count})::BIGINT AS ns FROM ({loads}) x
        LEFT JOIN events o ON o.rank = {context.scope.rank} AND o.event_id = x.op_id
        WHERE coalesce(x.site_id, o.site_id) IS NOT NULL GROUP BY ALL ORDER BY ns DESC LIMIT 5"""
    )
    return [
        Draft(
            title="Graphs are compiled or loaded again during training",
            line_times_ns={item["site_id"]: item["ns"] for item in lines},
            saving=bound(row["load_ns"], 0.9, 0.5),
            evidence=[evidence],
            advice="Keep shapes the same from step to step (pad batches, bucket sequence lengths), and keep Python numbers that change out of the graph; a persistent cache (TORCH_NEURONX_NEFF_CACHE_DIR) helps across runs only.",
            affected=loads,
            side="host",
            confidence="high",
        )
    ]


RULE = Rule(
    name="neuron_model_loads",
    title="Graph loads during training",
    specificity=3,
    needs=("neuron_system",),
    check=check,
    settings=(
        Setting(
            "load_share",
            0.01,
            "Smallest part of a step spent loading",
            "half a percent is the report's own floor; twice that here",
        ),
    ),
)
