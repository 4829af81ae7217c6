"""The same weights or inputs are loaded into SBUF again and again."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.analysis.engine import literal
from explorer.analysis.intervals import Intervals
from explorer.analysis.neuron.interval_sets import intersect
from explorer.analysis.neuron.lanes import CoreLanes
from explorer.analysis.neuron.rule_scope import NeuronScope, name_of, worst
from explorer.analysis.rule import Draft, Rule, Setting
from explorer.analysis.rule_context import RuleContext
from explorer.model.finding import Saving


def check(context: RuleContext) -> Sequence[Draft]:
    scope = NeuronScope.of(context)
    factor = context.setting(RULE, "repeat_factor")
    candidates = []
    for core in scope.cores:
        names = [
            row["variable_name"]
            for row in context.rows(
                f"""SELECT DISTINCT variable_name FROM neuron.TensorInfo WHERE {scope.profile(core)}
                AND load_to_sbuf_repeat_factor > {factor} AND variable_name IS NOT NULL ORDER BY 1"""
            )
        ]
        if names:
            table = context.engine.sql(
                f"SELECT start_ns, start_ns + duration_ns AS end_ns FROM ({_loads(scope, core, names)})"
            ).arrow()
            loads = Intervals.of(table.column("start_ns").to_numpy(), table.column("end_ns").to_numpy())
            candidates.append((intersect(loads, scope.exposed(core)["dma"]).total_ns, core, names))
    found = worst([(time_ns, core) for time_ns, core, _ in candidates])
    if found is None:
        return []
    core = found[1]
    names = next(listed for _, each, listed in candidates if each is core)
    evidence, row = context.evidence(
        "Loads of {tensors} tensors, {repeat} times each on average: {loaded_bytes} for {unique_bytes} of data, the most for {worst}.",
        f"""SELECT count(DISTINCT variable_name) AS tensors, sum(load_to_sbuf_total_size_bytes) / nullif(sum(size), 0) AS repeat,
  sum(load_to_sbuf_total_size_bytes)::BIGINT AS loaded_bytes, sum(size)::BIGINT AS unique_bytes,
  arg_max(variable_name, load_to_sbuf_total_size_bytes) AS worst
FROM neuron.TensorInfo WHERE {scope.profile(core)} AND load_to_sbuf_repeat_factor > {factor}""",
        _loads(scope, core, names) + " ORDER BY e.duration_ns DESC",
    )
    repeat = max(1.0, float(row["repeat"] or factor))
    time_ns = scope.per_step(found[0] * (1 - 1 / repeat))
    if time_ns < context.setting(RULE, "exposed_share") * context.scope.mean_ns:
        return []
    lines = scope.lines(f"SELECT event_id, duration_ns AS ns FROM ({_loads(scope, core, names)})")
    return [
        Draft(
            title=f"{name_of(core)} loads the same data again and again",
            line_times_ns=lines,
            saving=Saving(round(0.3 * time_ns), round(0.7 * time_ns), time_ns),
            evidence=[evidence],
            advice=f"Keep {row['worst']} in SBUF across the loop: move its load out of the inner loop, or change the loop order so that each tile of it is used up while it is there.",
            affected=_loads(scope, core, names),
            remaining_share=1 / repeat,
            side="device",
            confidence="medium",
            key=name_of(core),
        )
    ]


def _loads(scope: NeuronScope, core: CoreLanes, names: list[str]) -> str:
    listed = ", ".join(literal(name) for name in names)
    return f"""SELECT e.start_ns, e.duration_ns, e.event_id FROM neuron.DmaPacketAggregated d
JOIN neuron.EventOffsets o ON o.rank = d.rank AND o.profile = d.profile AND o.table_name = 'DmaPacketAggregated'
JOIN events e ON e.rank = d.rank AND e.event_id = d.id + o.id_offset
WHERE {scope.profile(core, "d")} AND coalesce(d.pcore_idx, 0) = {core.core} AND d.variable IN ({listed})"""


RULE = Rule(
    name="neuron_weight_reload",
    title="Reloaded weights",
    specificity=3,
    needs=("neuron",),
    check=check,
    settings=(
        Setting(
            "repeat_factor",
            1.5,
            "Times a tensor is loaded into SBUF from which it counts as reloaded",
            "public profiling skills of AWS: load_to_sbuf_repeat_factor > 1.5",
        ),
        Setting(
            "exposed_share",
            0.01,
            "Smallest part of the step in which the extra loads are exposed",
            "half a percent is the report's own floor; twice that here",
        ),
    ),
)
