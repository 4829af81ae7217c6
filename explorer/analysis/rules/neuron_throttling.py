"""The Tensor engine works while it is throttled."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.analysis.neuron.interval_sets import clip, intersect
from explorer.analysis.neuron.lanes import THROTTLE
from explorer.analysis.neuron.rule_scope import NeuronScope, name_of, worst
from explorer.analysis.rule import Draft, Rule, Setting
from explorer.analysis.rule_context import RuleContext
from explorer.model.finding import Saving


def check(context: RuleContext) -> Sequence[Draft]:
    scope = NeuronScope.of(context)
    found = worst(
        [
            (intersect(clip(core.lane(THROTTLE), *scope.window(core)), core.lane("Tensor")).total_ns, core)
            for core in scope.cores
        ]
    )
    if found is None:
        return []
    core = found[1]
    place = scope.place(core)
    both = f"""SELECT greatest(t.start_ns, b.start_ns) AS start_ns,
  least(t.start_ns + t.duration_ns, b.start_ns + b.duration_ns) - greatest(t.start_ns, b.start_ns) AS duration_ns
FROM (SELECT * FROM neuron_busy WHERE {place} AND lane = '{THROTTLE}') t
JOIN (SELECT * FROM neuron_busy WHERE {place} AND lane = 'Tensor') b
  ON b.start_ns < t.start_ns + t.duration_ns AND b.start_ns + b.duration_ns > t.start_ns"""
    evidence, row = context.evidence(
        "The Tensor engine of "
        + name_of(core)
        + " works {active_ns} under throttling ({kinds}), at {limit_share} of its cycles at the hardest.",
        f"""SELECT (SELECT coalesce(sum(duration_ns), 0)::BIGINT FROM ({both})) AS active_ns,
  string_agg(DISTINCT type, ', ' ORDER BY type) AS kinds, min(k::DOUBLE / nullif(n, 0)) AS limit_share,
  sum(k::DOUBLE / nullif(n, 0) * duration) / nullif(sum(duration), 0) AS mean_limit_share
FROM neuron.Throttle WHERE {scope.profile(core)} AND coalesce(pcore_idx, {core.core}) = {core.core}""",
    )
    lost = 1 - min(1.0, float(row["mean_limit_share"] if row["mean_limit_share"] is not None else 1.0))
    time_ns = scope.per_step(found[0] * lost)
    if time_ns < context.setting(RULE, "lost_share") * context.scope.mean_ns:
        return []
    lines = scope.lines(
        f"""SELECT e.event_id, e.duration_ns * {lost} AS ns FROM ({both}) x
        JOIN (SELECT e.* FROM events e JOIN tracks t USING (rank, track_id) WHERE e.category = 'instruction' AND {scope.on_engine(core, "Tensor")}) e
          ON e.start_ns >= x.start_ns AND e.start_ns < x.start_ns + x.duration_ns"""
    )
    return [
        Draft(
            title=f"The Tensor engine of {name_of(core)} is throttled",
            line_times_ns=lines,
            saving=Saving(0, round(0.5 * time_ns), time_ns),
            evidence=[evidence],
            advice="Power throttling follows long dense matrix work: smaller types cost less power. Throttling at the start of a burst (current ramp on Trn2 and Trn3) "
            "is expected after idle gaps and goes away when the gaps do. Thermal throttling is the host's cooling.",
            affected=both,
            remaining_share=1 - lost,
            side="device",
            confidence="medium",
            caveats=("Only throttling while the engine works is counted.",),
            key=name_of(core),
        )
    ]


RULE = Rule(
    name="neuron_throttling",
    title="Throttling",
    specificity=2,
    needs=("neuron",),
    check=check,
    settings=(
        Setting(
            "lost_share",
            0.005,
            "Smallest part of the step lost to it",
            "AWS Neuron Explorer's summary page gives an insight for any active throttling; the report's floor applies",
        ),
    ),
)
