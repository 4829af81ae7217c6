"""Engines wait for data that was spilled from SBUF to HBM and is reloaded."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.analysis.neuron.rule_scope import NeuronScope, bound, name_of, worst
from explorer.analysis.rule import Draft, Rule, Setting
from explorer.analysis.rule_context import RuleContext


def check(context: RuleContext) -> Sequence[Draft]:
    scope = NeuronScope.of(context)
    condition = "cause = 'spill'"
    found = worst([(scope.without_compute(c, scope.gaps(c, condition)).total_ns, c) for c in scope.cores])
    if found is None:
        return []
    idle_ns, core = scope.per_step(found[0]), found[1]
    evidence, row = context.evidence(
        "{gaps} gaps of "
        + name_of(core)
        + " ({idle_ns}) end with a reload from spill space; {reload_share} of the HBM bytes read are reloads, in {transfers} spill transfers of {spill_bytes}.",
        f"""SELECT (SELECT count(*) FROM neuron_idle WHERE {scope.place(core)} AND {condition}) AS gaps,
  (SELECT coalesce(sum(duration_ns), 0)::BIGINT FROM neuron_idle WHERE {scope.place(core)} AND {condition}) AS idle_ns,
  (SELECT max(spill_reload_bytes)::DOUBLE / nullif(max(hbm_read_bytes), 0) FROM neuron.Summary WHERE {scope.profile(core)}) AS reload_share,
  (SELECT sum(transfers)::BIGINT FROM neuron_dma WHERE {scope.profile(core)} AND core = {core.core} AND is_spill) AS transfers,
  (SELECT sum(transfer_bytes)::BIGINT FROM neuron_dma WHERE {scope.profile(core)} AND core = {core.core} AND is_spill) AS spill_bytes""",
        f"SELECT event_id FROM neuron_idle WHERE {scope.place(core)} AND {condition} AND event_id IS NOT NULL ORDER BY duration_ns DESC",
    )
    heavy = (row["reload_share"] or 0) >= context.setting(RULE, "reload_share")
    if not heavy and idle_ns < context.setting(RULE, "idle_share") * context.scope.mean_ns:
        return []
    lines = scope.gap_lines(core, condition)
    return [
        Draft(
            title=f"{name_of(core)} waits for spilled data",
            line_times_ns=lines,
            saving=bound(idle_ns, 0.7),
            evidence=[evidence],
            advice="Use smaller tiles, or order the work so that a tile is used up before the next is loaded, so that live data fits into SBUF; "
            "in compiled graphs try a smaller batch per graph or a higher optimisation level of the compiler.",
            affected=f"SELECT start_ns, duration_ns FROM neuron_idle WHERE {scope.place(core)} AND {condition}",
            side="device",
            confidence="high",
            key=name_of(core),
        )
    ]


RULE = Rule(
    name="neuron_spill",
    title="Spill and reload",
    specificity=3,
    needs=("neuron",),
    check=check,
    settings=(
        Setting(
            "reload_share",
            0.25,
            "Part of HBM bytes read that are reloads from which the rule always speaks",
            "AWS Neuron Explorer's summary page: spill insight above 25 %",
        ),
        Setting(
            "idle_share",
            0.01,
            "Else: smallest part of the step spent waiting for reloads",
            "half a percent is the report's own floor; twice that here",
        ),
    ),
)
