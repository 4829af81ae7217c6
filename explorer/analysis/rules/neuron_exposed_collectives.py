"""Collectives that no compute of the logical core hides."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.analysis.neuron.rule_scope import NeuronScope, bound, name_of, worst
from explorer.analysis.rule import Draft, Rule, Setting
from explorer.analysis.rule_context import RuleContext


def check(context: RuleContext) -> Sequence[Draft]:
    scope = NeuronScope.of(context)
    found = worst([(scope.exposed(core)["collective"].total_ns, core) for core in scope.logical])
    if found is None:
        return []
    time_ns, core = scope.per_step(found[0]), found[1]
    if time_ns < context.setting(RULE, "exposed_share") * context.scope.mean_ns:
        return []
    place = scope.place(core)
    evidence, _ = context.evidence(
        "Time of {operations} collectives on "
        + name_of(core)
        + ": {collective_ns}; during {exposed_ns} of that no engine computes.",
        f"""SELECT (SELECT count(*) FROM neuron.CcOp WHERE {scope.profile(core)}) AS operations,
  (SELECT coalesce(sum(duration_ns), 0)::BIGINT FROM neuron_overlap WHERE {scope.profile(core)} AND core = -1 AND collective) AS collective_ns,
  (SELECT coalesce(sum(duration_ns), 0)::BIGINT FROM neuron_exposed WHERE {place} AND kind = 'collective') AS exposed_ns""",
        f"SELECT e.event_id FROM events e WHERE {context.where()} AND e.category = 'collective' ORDER BY e.duration_ns DESC",
    )
    lines = scope.lines(
        f"SELECT e.event_id, e.duration_ns AS ns FROM events e WHERE {context.where()} AND e.category = 'collective'"
    )
    return [
        Draft(
            title=f"Collectives of {name_of(core)} overlap no compute",
            line_times_ns=lines,
            saving=bound(time_ns, 0.6, 0.2),
            evidence=[evidence],
            advice="Give the collective independent work to hide behind: reduce gradients in buckets during backward, prefetch parameters of the next layer, "
            "or put it on a torch_neuronx.Stream of its own.",
            affected=f"SELECT e.event_id, e.start_ns, e.duration_ns FROM events e WHERE {context.where()} AND e.category = 'collective'",
            side="device",
            confidence="high",
            key=name_of(core),
        )
    ]


RULE = Rule(
    name="neuron_exposed_collectives",
    title="Exposed collectives",
    specificity=3,
    needs=("neuron",),
    check=check,
    settings=(
        Setting(
            "exposed_share",
            0.02,
            "Smallest part of the step with a collective and no compute",
            "between the report's floor and medium severity",
        ),
    ),
)
