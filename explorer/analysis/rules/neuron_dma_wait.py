"""Compute waits for DMA in general: memory-bound, or loads that start too late."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.analysis.neuron.rule_scope import NeuronScope, bound, name_of, share, worst
from explorer.analysis.rule import Draft, Rule, Setting
from explorer.analysis.rule_context import RuleContext


def check(context: RuleContext) -> Sequence[Draft]:
    scope = NeuronScope.of(context)
    found = worst([(scope.exposed(core)["dma"].total_ns, core) for core in scope.cores])
    if found is None:
        return []
    time_ns, core = scope.per_step(found[0]), found[1]
    if time_ns < context.setting(RULE, "exposed_share") * context.scope.mean_ns:
        return []
    place = scope.place(core)
    evidence, row = context.evidence(
        name_of(core)
        + " computes nothing for {exposed_ns} while DMA is under way; its bytes at full DMA bandwidth take {ideal_ns}, DMA was active for {memory_ns}.",
        f"""SELECT (SELECT sum(duration_ns)::BIGINT FROM neuron_exposed WHERE {place} AND kind = 'dma') AS exposed_ns,
  memory_ideal_ns AS ideal_ns, memory_ns FROM neuron_bounds WHERE {scope.profile(core)} AND core = {core.core}""",
        f"SELECT event_id FROM neuron_idle WHERE {place} AND cause IN ('dma', 'input') AND event_id IS NOT NULL ORDER BY duration_ns DESC",
    )
    busy = share(row.get("ideal_ns") or 0, row.get("memory_ns") or 0)
    near_peak = busy >= context.setting(RULE, "bandwidth_share")
    advice = (
        "DMA runs near its bandwidth: move fewer bytes (keep weights and activations in SBUF, fuse operators, smaller types)."
        if near_peak
        else "DMA is far from its bandwidth: start loads earlier (prefetch the next tile, double buffering), make them larger, and spread them over queues."
    )
    return [
        Draft(
            title=f"{name_of(core)} waits for DMA",
            line_times_ns=scope.gap_lines(core, "cause IN ('dma', 'input')"),
            saving=bound(time_ns, 0.3 if near_peak else 0.5, 0.1),
            evidence=[evidence],
            advice=advice,
            affected=f"SELECT start_ns, duration_ns FROM neuron_exposed WHERE {place} AND kind = 'dma'",
            side="device",
            confidence="medium",
            key=name_of(core),
        )
    ]


RULE = Rule(
    name="neuron_dma_wait",
    title="Waiting for DMA",
    specificity=1,
    needs=("neuron",),
    check=check,
    settings=(
        Setting(
            "exposed_share",
            0.03,
            "Smallest part of the step with DMA under way and no compute",
            "medium severity of findings",
        ),
        Setting(
            "bandwidth_share",
            0.6,
            "Part of DMA time that the bytes need at full bandwidth from which DMA counts as saturated",
            "public NKI performance guide: memory-bound and good from 60 % bandwidth use",
        ),
    ),
)
