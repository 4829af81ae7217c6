"""The Tensor engine is active but its array is poorly filled."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.analysis.neuron.lanes import CoreLanes
from explorer.analysis.neuron.rule_scope import NeuronScope, bound, name_of
from explorer.analysis.rule import Draft, Rule, Setting
from explorer.analysis.rule_context import RuleContext


def check(context: RuleContext) -> Sequence[Draft]:
    scope = NeuronScope.of(context)
    worst: tuple[float, CoreLanes] | None = None
    for core in scope.cores:
        row = context.row(
            f"SELECT compute_ns, compute_ideal_ns FROM neuron_bounds WHERE {scope.profile(core)} AND core = {core.core}"
        )
        if not row or not row["compute_ns"] or row["compute_ideal_ns"] is None:
            continue
        fill = row["compute_ideal_ns"] / row["compute_ns"]
        if fill < context.setting(RULE, "fill") and (worst is None or fill < worst[0]):
            worst = fill, core
    if worst is None:
        return []
    core = worst[1]
    evidence, row = context.evidence(
        "The Tensor engine of "
        + name_of(core)
        + " is active for {compute_ns}; at its peak the same matrix work takes {ideal_ns}, a fill of {fill_share}.",
        f"""SELECT compute_ns, compute_ideal_ns AS ideal_ns, compute_ideal_ns / compute_ns AS fill_share
FROM neuron_bounds WHERE {scope.profile(core)} AND core = {core.core}""",
    )
    time_ns = scope.per_step(row["compute_ns"] - row["ideal_ns"])
    if time_ns < context.setting(RULE, "lost_share") * context.scope.mean_ns:
        return []
    lines = scope.engine_lines(core, "Tensor")
    return [
        Draft(
            title=f"Matmuls of {name_of(core)} fill the array badly",
            line_times_ns=lines,
            saving=bound(time_ns, 0.4, 0.1),
            evidence=[evidence],
            advice="Give each matmul a full tile: 128 rows of contraction, 128 of the stationary operand, up to 512 columns; batch small matmuls together, and load weights once per several matmuls.",
            affected=f"SELECT start_ns, duration_ns FROM neuron_busy WHERE {scope.place(core)} AND lane = 'Tensor'",
            remaining_share=min(1.0, worst[0] + 0.2),
            side="device",
            confidence="low",
            key=name_of(core),
        )
    ]


RULE = Rule(
    name="neuron_pe_fill",
    title="Low array fill",
    specificity=1,
    needs=("neuron",),
    check=check,
    settings=(
        Setting(
            "fill",
            0.5,
            "Matrix work at peak over Tensor active time",
            "AWS Neuron Explorer's summary page: insight when useful work is under 50 % of active",
        ),
        Setting("lost_share", 0.03, "Smallest part of the step lost", "medium severity of findings"),
    ),
)
