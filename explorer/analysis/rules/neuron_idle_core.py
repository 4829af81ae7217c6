"""A core stands still: no engine, no DMA, no collective; the serialisation gap of the bounds model."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.analysis.neuron.rule_scope import NeuronScope, bound, name_of, worst
from explorer.analysis.rule import Draft, Rule, Setting
from explorer.analysis.rule_context import RuleContext


def check(context: RuleContext) -> Sequence[Draft]:
    scope = NeuronScope.of(context)
    found = worst([(scope.exposed(core)["idle"].total_ns, core) for core in scope.logical])
    if found is None:
        return []
    time_ns, core = scope.per_step(found[0]), found[1]
    if time_ns < context.setting(RULE, "idle_share") * context.scope.mean_ns:
        return []
    place = scope.place(core)
    causes = f"rank = {core.rank} AND profile = '{core.profile.replace(chr(39), chr(39) * 2)}' AND engine = 'Tensor'"
    evidence, _ = context.evidence(
        "All engines and queues of "
        + name_of(core)
        + " stand still for {idle_ns}; the Tensor engine is active {tensor_share} of the profile and waits longest for {blocker}.",
        f"""SELECT (SELECT coalesce(sum(duration_ns), 0)::BIGINT FROM neuron_exposed WHERE {place} AND kind = 'idle') AS idle_ns,
  (SELECT max(active_share) FROM engines WHERE {scope.profile(core)} AND engine = 'Tensor') AS tensor_share,
  (SELECT coalesce(arg_max(coalesce(blocker, cause), idle_ns), 'nothing known') FROM neuron_idle_causes WHERE {causes}) AS blocker""",
        f"SELECT event_id FROM neuron_idle WHERE {causes} AND event_id IS NOT NULL ORDER BY duration_ns DESC",
    )
    lines = scope.lines(
        f"""SELECT event_id, duration_ns AS ns FROM neuron_idle
        WHERE {causes} AND event_id IS NOT NULL AND cause IN ('unknown', 'engine')"""
    )
    return [
        Draft(
            title=f"{name_of(core)} stands still between instructions",
            line_times_ns=lines,
            saving=bound(time_ns, 0.4, 0.1),
            evidence=[evidence],
            advice="Engines wait for each other in turn: let independent tiles overlap (software pipelining, more buffers), and fuse short instructions, each of which costs about 60 to 100 cycles however little it does.",
            affected=f"SELECT start_ns, duration_ns FROM neuron_exposed WHERE {place} AND kind = 'idle'",
            side="device",
            confidence="medium",
            key=name_of(core),
        )
    ]


RULE = Rule(
    name="neuron_idle_core",
    title="Idle core",
    specificity=1,
    needs=("neuron",),
    check=check,
    settings=(
        Setting(
            "idle_share",
            0.05,
            "Smallest part of the step in which nothing runs on the logical core",
            "public profiling skills of AWS: gaps under 5 % are fine",
        ),
    ),
)
