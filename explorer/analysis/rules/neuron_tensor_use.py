"""The Tensor engine stands still for much of a profile that memory and the other engines would let run faster."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.analysis.neuron.interval_sets import clip
from explorer.analysis.neuron.lanes import CoreLanes
from explorer.analysis.neuron.rule_scope import NeuronScope, bound, name_of, share
from explorer.analysis.rule import Draft, Rule, Setting
from explorer.analysis.rule_context import RuleContext


def check(context: RuleContext) -> Sequence[Draft]:
    scope = NeuronScope.of(context)
    worst: tuple[int, CoreLanes] | None = None
    for core in scope.cores:
        start, end = scope.window(core)
        busy = {
            lane: clip(core.lane(lane), start, end).total_ns
            for lane in ("Tensor", "Vector", "Scalar", "GpSimd", "dma")
        }
        # What the bounds model leaves: a profile that memory or another engine fills has nothing to gain here.
        room = end - start - max(busy.values())
        if not busy["Tensor"] or share(busy["Tensor"], end - start) >= context.setting(RULE, "active_share"):
            continue
        if worst is None or room > worst[0]:
            worst = room, core
    if worst is None:
        return []
    time_ns, core = scope.per_step(worst[0]), worst[1]
    if time_ns < context.setting(RULE, "room_share") * context.scope.mean_ns:
        return []
    place, where = scope.place(core), f"{scope.profile(core)} AND core = {core.core}"
    gaps = "engine = 'Tensor' AND cause NOT IN ('short', 'start', 'end')"
    evidence, _ = context.evidence(
        "The Tensor engine of "
        + name_of(core)
        + " is active for {active_ns} ({active_share}); the bounds model lets {total_ns} shrink to {bound_ns} ({bound}). It waits longest for {blocker}.",
        f"""SELECT e.active_ns, e.active_share, b.total_ns, b.bound_ns, b.bound,
  (SELECT coalesce(arg_max(coalesce(blocker, cause), idle_ns), 'nothing known') FROM neuron_idle_causes WHERE {where} AND engine = 'Tensor') AS blocker
FROM engines AS e JOIN neuron_bounds AS b USING (rank, profile, core)
WHERE {scope.profile(core, "e")} AND e.core = {core.core} AND e.engine = 'Tensor'""",
        f"SELECT event_id FROM neuron_idle WHERE {place} AND {gaps} AND event_id IS NOT NULL ORDER BY duration_ns DESC, event_id",
    )
    return [
        Draft(
            title=f"The Tensor engine of {name_of(core)} stands still most of the time"
            if _idle_most(scope, core)
            else f"The Tensor engine of {name_of(core)} often stands still",
            line_times_ns=scope.gap_lines(core, gaps),
            saving=bound(time_ns, 0.3, 0.1),
            evidence=[evidence],
            advice="Let the engines work at the same time: load the next tile while this one is multiplied, read PSUM of the last one meanwhile, "
            "and give the Tensor engine independent matmuls to go on with. neuron_idle_causes says what it waits for.",
            affected=f"SELECT start_ns, duration_ns FROM neuron_idle WHERE {place} AND engine = 'Tensor'",
            side="device",
            confidence="low",
            key=name_of(core),
        )
    ]


def _idle_most(scope: NeuronScope, core: CoreLanes) -> bool:
    start, end = scope.window(core)
    return 2 * clip(core.lane("Tensor"), start, end).total_ns < end - start


RULE = Rule(
    name="neuron_tensor_use",
    title="Low Tensor engine use",
    specificity=0,
    needs=("neuron",),
    check=check,
    settings=(
        Setting(
            "active_share",
            0.9,
            "Part of the profile in which the Tensor engine is active, below which the rule speaks",
            "public NKI performance guide and profiling skills: Tensor engine active for 90 % or more",
        ),
        Setting(
            "room_share",
            0.05,
            "Smallest part of the step that the bounds model leaves to be saved",
            "public profiling skills of AWS: gaps under 5 % are fine",
        ),
    ),
)
