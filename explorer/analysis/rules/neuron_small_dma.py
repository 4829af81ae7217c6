"""Compute waits for many small DMA transfers, whose fixed cost is larger than their bytes."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.analysis.neuron.rule_scope import NeuronScope, bound, name_of, worst
from explorer.analysis.rule import Draft, Rule, Setting
from explorer.analysis.rule_context import RuleContext


def check(context: RuleContext) -> Sequence[Draft]:
    scope = NeuronScope.of(context)
    limit = context.setting(RULE, "small_bytes")
    condition = f"""cause IN ('dma', 'input') AND blocker IN (SELECT queue FROM neuron_dma d WHERE d.rank = {context.scope.rank}
  AND d.profile = neuron_idle.profile AND d.core = neuron_idle.core GROUP BY queue
  HAVING sum(transfer_bytes) / sum(transfers) < {limit:.0f} AND sum(transfers) >= {context.setting(RULE, "transfers"):.0f})"""
    found = worst([(scope.without_compute(c, scope.gaps(c, condition)).total_ns, c) for c in scope.cores])
    if found is None:
        return []
    idle_ns, core = scope.per_step(found[0]), found[1]
    if idle_ns < context.setting(RULE, "idle_share") * context.scope.mean_ns:
        return []
    evidence, row = context.evidence(
        "{transfers} transfers of {mean_bytes} on average on {queue} ({queue_type}); "
        + name_of(core)
        + " waits {idle_ns} for such queues.",
        f"""SELECT sum(transfers)::BIGINT AS transfers, sum(transfer_bytes) / sum(transfers) AS mean_bytes, queue, queue_type,
  (SELECT coalesce(sum(duration_ns), 0)::BIGINT FROM neuron_idle WHERE {scope.place(core)} AND {condition}) AS idle_ns
FROM neuron_dma WHERE {scope.profile(core)} AND core = {core.core}
GROUP BY queue, queue_type HAVING sum(transfer_bytes) / sum(transfers) < {limit:.0f} ORDER BY transfers DESC LIMIT 1""",
        f"SELECT event_id FROM neuron_idle WHERE {scope.place(core)} AND {condition} AND event_id IS NOT NULL ORDER BY duration_ns DESC",
    )
    severe = (row["mean_bytes"] or 0) < context.setting(RULE, "severe_bytes")
    return [
        Draft(
            title=f"{name_of(core)} waits for small DMA transfers",
            line_times_ns=scope.gap_lines(core, condition),
            saving=bound(idle_ns, 0.8 if severe else 0.6),
            evidence=[evidence],
            advice="Move more bytes per transfer: load whole tiles (32 KiB or more, rows of at least 2 KiB contiguous), load once outside the "
            "inner loop, and prefetch the next tile while this one computes (double buffering). Each transfer costs about 1.3 µs "
            "(0.6 µs when the hardware makes its descriptors) however small it is.",
            affected=f"SELECT start_ns, duration_ns FROM neuron_idle WHERE {scope.place(core)} AND {condition}",
            side="device",
            confidence="high",
            key=name_of(core),
        )
    ]


RULE = Rule(
    name="neuron_small_dma",
    title="Small DMA transfers",
    specificity=3,
    needs=("neuron",),
    check=check,
    settings=(
        Setting(
            "small_bytes",
            2048,
            "Mean transfer below which a queue is inefficient",
            "public NKI DMA bandwidth guide: 2 KiB contiguous is the minimum",
        ),
        Setting(
            "severe_bytes",
            512,
            "Mean transfer below which the fixed cost is nearly all of it",
            "public NKI DMA bandwidth guide: under 256 B severe; twice that here",
        ),
        Setting(
            "transfers", 32, "Fewest transfers of such a queue", "below that the fixed costs are under 50 µs"
        ),
        Setting(
            "idle_share",
            0.01,
            "Smallest part of the step spent waiting for them",
            "half a percent is the report's own floor; twice that here",
        ),
    ),
)
