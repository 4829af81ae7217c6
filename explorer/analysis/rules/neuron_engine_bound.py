"""Tensor waits for Vector, Scalar or GpSimd: the profile is bound by an engine that does no matrix work."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.analysis.neuron.interval_sets import clip
from explorer.analysis.neuron.rule_scope import NeuronScope, bound, name_of, share
from explorer.analysis.rule import Draft, Rule, Setting
from explorer.analysis.rule_context import RuleContext

_ADVICE = {
    "Vector": "Move elementwise work to the Scalar or GpSimd engine, fuse it into fewer passes (tensor_scalar and reduce forms), use 128 partitions, and 16-bit types for its fast modes.",
    "Scalar": "Move work that is no activation to the Vector engine, fuse scale and bias into the activation, and read PSUM directly.",
    "GpSimd": "GpSimd is the slowest engine: move iota, masks and memsets out of the loop, or to the Vector engine.",
}


def check(context: RuleContext) -> Sequence[Draft]:
    scope = NeuronScope.of(context)
    drafts = []
    for name, advice in _ADVICE.items():
        found = []
        for core in scope.cores:
            window = scope.window(core)
            busy, tensor = (clip(core.lane(lane), *window).total_ns for lane in (name, "Tensor"))
            if busy > tensor and share(busy, window[1] - window[0]) >= context.setting(RULE, "active_share"):
                found.append((busy - tensor, core, busy))
        if not found:
            continue
        _, core, busy = max(found, key=lambda item: item[0])
        place = scope.place(core)
        evidence, _ = context.evidence(
            name
            + " of "
            + name_of(core)
            + " is active for {active_ns} ({active_share}), Tensor for {tensor_ns}; Tensor waits {idle_ns} for it.",
            f"""SELECT max(active_ns) FILTER (WHERE engine = '{name}') AS active_ns, max(active_share) FILTER (WHERE engine = '{name}') AS active_share,
  coalesce(max(active_ns) FILTER (WHERE engine = 'Tensor'), 0) AS tensor_ns,
  (SELECT coalesce(sum(duration_ns), 0)::BIGINT FROM neuron_idle WHERE {place} AND engine = 'Tensor' AND blocker = '{name}') AS idle_ns
FROM engines WHERE {scope.profile(core)} AND core = {core.core}""",
        )
        # Without it the next busiest engine would bind.
        others = max(
            clip(core.lane(lane), *scope.window(core)).total_ns
            for lane in ("Tensor", "Vector", "Scalar", "GpSimd")
            if lane != name
        )
        time_ns = scope.per_step(max(0, busy - others))
        drafts.append(
            Draft(
                title=f"{name_of(core)} is bound by its {name} engine",
                line_times_ns=scope.engine_lines(core, name),
                saving=bound(time_ns, 0.4, 0.1),
                evidence=[evidence],
                advice=advice,
                affected=f"SELECT start_ns, duration_ns FROM neuron_busy WHERE {place} AND lane = '{name}'",
                side="device",
                confidence="medium",
                key=f"{name_of(core)} {name}",
            )
        )
    return drafts


RULE = Rule(
    name="neuron_engine_bound",
    title="Bound by another engine",
    specificity=2,
    needs=("neuron",),
    check=check,
    settings=(
        Setting(
            "active_share",
            0.5,
            "Part of the profile in which the engine is active",
            "public NKI performance guide aims at 90 %; community notes call 65 to 70 % latency-bound; half is where it clearly leads",
        ),
    ),
)
