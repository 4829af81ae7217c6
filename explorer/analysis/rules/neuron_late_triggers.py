"""Collectives that start long after they were triggered, while nothing computes."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.analysis.intervals import Intervals
from explorer.analysis.neuron.lanes import CoreLanes
from explorer.analysis.neuron.rule_scope import NeuronScope, bound, name_of, worst
from explorer.analysis.rule import Draft, Rule, Setting
from explorer.analysis.rule_context import RuleContext


def check(context: RuleContext) -> Sequence[Draft]:
    scope = NeuronScope.of(context)
    limit = context.setting(RULE, "delay_ns")

    def delays(core: CoreLanes) -> str:
        return f"""SELECT start_ts - cc_trigger_start_delay + ({core.offset_ns}) AS start_ns, cc_trigger_start_delay AS duration_ns
FROM neuron.CcOp WHERE {scope.profile(core)} AND cc_trigger_start_delay >= {limit:.0f}"""

    candidates = []
    for core in scope.logical:
        table = context.engine.sql(
            f"SELECT start_ns, start_ns + duration_ns AS end_ns FROM ({delays(core)})"
        ).arrow()
        waits = Intervals.of(table.column("start_ns").to_numpy(), table.column("end_ns").to_numpy())
        candidates.append((scope.without_compute(core, waits).total_ns, core))
    found = worst(candidates)
    if found is None:
        return []
    time_ns, core = scope.per_step(found[0]), found[1]
    if time_ns < context.setting(RULE, "exposed_share") * context.scope.mean_ns:
        return []
    evidence, _ = context.evidence(
        "{late} of {operations} collectives start more than {limit_ns} after their trigger, {delay_ns} in all.",
        f"""SELECT count(*) FILTER (WHERE cc_trigger_start_delay >= {limit:.0f}) AS late, count(*) AS operations, {limit:.0f} AS limit_ns,
  coalesce(sum(cc_trigger_start_delay) FILTER (WHERE cc_trigger_start_delay >= {limit:.0f}), 0)::BIGINT AS delay_ns
FROM neuron.CcOp WHERE {scope.profile(core)}""",
        f"SELECT e.event_id FROM events e WHERE {context.where()} AND e.category = 'collective' ORDER BY e.start_ns",
    )
    lines = scope.lines(
        f"""SELECT e.event_id, c.cc_trigger_start_delay AS ns FROM neuron.CcOp c
        JOIN events e ON e.rank = c.rank AND e.category = 'collective' AND e.start_ns = c.start_ts + ({core.offset_ns})
        WHERE {scope.profile(core, "c")} AND c.cc_trigger_start_delay >= {limit:.0f}"""
    )
    return [
        Draft(
            title=f"Collectives of {name_of(core)} start late after their trigger",
            line_times_ns=lines,
            saving=bound(time_ns, 0.5, 0.1),
            evidence=[evidence],
            advice="A delay means that earlier collectives still occupy the stream, or that a peer comes late: use several streams, fewer and larger collectives, and look at the slowest rank.",
            affected=delays(core),
            side="device",
            confidence="medium",
            key=name_of(core),
        )
    ]


RULE = Rule(
    name="neuron_late_triggers",
    title="Late collectives",
    specificity=2,
    needs=("neuron",),
    check=check,
    settings=(
        Setting(
            "delay_ns",
            10_000,
            "Delay between trigger and start from which a collective is late",
            "several times the fixed cost of a DMA (about 1.3 us each, public NKI guide)",
        ),
        Setting(
            "exposed_share",
            0.01,
            "Smallest part of the step lost to it while nothing computes",
            "half a percent is the report's own floor; twice that here",
        ),
    ),
)
