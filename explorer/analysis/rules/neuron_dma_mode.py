"""Most DMA time is software-dynamic: descriptors made by code on an engine, transfer by transfer."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.analysis.neuron.interval_sets import clip, intersect
from explorer.analysis.neuron.lanes import DMA, SOFTWARE
from explorer.analysis.neuron.rule_scope import NeuronScope, bound, name_of, share, worst
from explorer.analysis.rule import Draft, Rule, Setting
from explorer.analysis.rule_context import RuleContext


def check(context: RuleContext) -> Sequence[Draft]:
    scope = NeuronScope.of(context)
    candidates = []
    for core in scope.cores:
        window = scope.window(core)
        software = clip(core.lane(SOFTWARE), *window)
        if share(software.total_ns, clip(core.lane(DMA), *window).total_ns) >= context.setting(
            RULE, "software_share"
        ):
            candidates.append((intersect(software, scope.exposed(core)["dma"]).total_ns, core))
    found = worst(candidates)
    if found is None:
        return []
    time_ns, core = scope.per_step(found[0]), found[1]
    if time_ns < context.setting(RULE, "exposed_share") * context.scope.mean_ns:
        return []
    place = scope.place(core)
    evidence, _ = context.evidence(
        "Software-dynamic DMA of "
        + name_of(core)
        + " is active for {software_ns}, {software_share} of all DMA time.",
        f"""SELECT sum(duration_ns) FILTER (WHERE lane = '{SOFTWARE}')::BIGINT AS software_ns,
  sum(duration_ns) FILTER (WHERE lane = '{SOFTWARE}') / sum(duration_ns) FILTER (WHERE lane = '{DMA}') AS software_share
FROM neuron_busy WHERE {place}""",
    )
    queues = [
        row["queue"]
        for row in context.rows(
            f"""SELECT queue FROM neuron_dma WHERE {scope.profile(core)} AND core = {core.core}
            AND queue_type = 'software_dynamic' AND queue IS NOT NULL ORDER BY queue"""
        )
    ]
    return [
        Draft(
            title=f"DMA of {name_of(core)} is mostly software-dynamic",
            line_times_ns=scope.gap_lines(core, context.in_texts("blocker", queues)) if queues else {},
            saving=bound(time_ns, 0.3, 0.1),
            evidence=[evidence],
            advice="Make the access pattern known at compile time (static shapes and offsets), or use hardware descriptor generation, "
            "so that no engine has to make descriptors.",
            affected=f"""SELECT start_ns, duration_ns FROM neuron_busy WHERE {place} AND lane = '{SOFTWARE}'""",
            side="device",
            confidence="medium",
            key=name_of(core),
        )
    ]


RULE = Rule(
    name="neuron_dma_mode",
    title="Dominant DMA mode",
    specificity=2,
    needs=("neuron",),
    check=check,
    settings=(
        Setting(
            "software_share",
            0.5,
            "Part of DMA time that is software-dynamic",
            "public DMA notes: look at the dominant mode, not at the average",
        ),
        Setting(
            "exposed_share",
            0.02,
            "Smallest part of the step in which it is exposed",
            "between the report's floor and medium severity",
        ),
    ),
)
