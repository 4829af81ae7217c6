"""Single collectives that take much longer than others of their kind."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.analysis.intervals import Intervals
from explorer.analysis.neuron.rule_scope import NeuronScope, bound, name_of, worst
from explorer.analysis.rule import Draft, Rule, Setting
from explorer.analysis.rule_context import RuleContext


def check(context: RuleContext) -> Sequence[Draft]:
    scope = NeuronScope.of(context)
    condition = f'"like" >= {context.setting(RULE, "alike"):.0f} AND over_median >= {context.setting(RULE, "over_median")}'
    candidates = []
    for core in scope.logical:
        table = context.engine.sql(
            f"""SELECT start_ts + median_ns::BIGINT + ({core.offset_ns}) AS start_ns, start_ts + duration_ns + ({core.offset_ns}) AS end_ns
            FROM neuron_collectives WHERE {scope.profile(core)} AND {condition}"""
        ).arrow()
        excess = Intervals.of(table.column("start_ns").to_numpy(), table.column("end_ns").to_numpy())
        candidates.append((scope.without_compute(core, excess).total_ns, core))
    found = worst(candidates)
    if found is None:
        return []
    time_ns, core = scope.per_step(found[0]), found[1]
    rows = f"FROM neuron_collectives WHERE {scope.profile(core)} AND {condition}"
    evidence, _ = context.evidence(
        "{outliers} collectives take up to {most} times the median of their kind, {excess_ns} more in all; the worst is {operation}.",
        f"""SELECT count(*) AS outliers, max(over_median) AS most, sum(duration_ns - median_ns)::BIGINT AS excess_ns,
  arg_max(operation, duration_ns) AS operation {rows}""",
    )
    return [
        Draft(
            title=f"Some collectives of {name_of(core)} take much longer than their like",
            line_times_ns={},
            saving=bound(time_ns, 0.6, 0.2),
            evidence=[evidence],
            advice="A collective ends when the last rank has come: look at what the other ranks did before it (verb ranks), and at link congestion where all ranks were there.",
            affected=f"SELECT start_ts + median_ns::BIGINT + ({core.offset_ns}) AS start_ns, (duration_ns - median_ns)::BIGINT AS duration_ns {rows}",
            side="device",
            confidence="medium",
            key=name_of(core),
        )
    ]


RULE = Rule(
    name="neuron_collective_outliers",
    title="Outlier collectives",
    specificity=2,
    needs=("neuron",),
    check=check,
    settings=(
        Setting(
            "over_median",
            1.5,
            "Duration over the median of the same operation, size and group",
            "AWS Neuron Explorer marks outliers against the group's median without giving a factor; 1.5 is ours",
        ),
        Setting("alike", 4, "Fewest collectives of a kind for a median to mean something", "ours"),
    ),
)
