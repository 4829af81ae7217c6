"""The Tensor engine spends its time on transposes."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.analysis.neuron.lanes import CoreLanes
from explorer.analysis.neuron.rule_scope import NeuronScope, bound, name_of, worst
from explorer.analysis.rule import Draft, Rule, Setting
from explorer.analysis.rule_context import RuleContext


def check(context: RuleContext) -> Sequence[Draft]:
    scope = NeuronScope.of(context)
    candidates = []
    for core in scope.cores:
        row = context.row(
            f"""SELECT sum(transpose_flops)::DOUBLE / nullif(sum(adjusted_flops), 0) AS share
            FROM neuron_work WHERE {scope.profile(core)} AND core = {core.core}"""
        )
        if (row["share"] or 0) >= context.setting(RULE, "flops_share"):
            time = context.row(
                f"SELECT coalesce(sum(duration_ns), 0)::BIGINT AS ns FROM ({_transposes(scope, core)})"
            )
            candidates.append((int(time["ns"]), core))
    found = worst(candidates)
    if found is None:
        return []
    time_ns, core = scope.per_step(found[0]), found[1]
    evidence, _ = context.evidence(
        "{transposes} transposes on the Tensor engine of "
        + name_of(core)
        + " take {transpose_ns}; they are {flops_share} of its flops.",
        f"""SELECT count(*) FILTER (WHERE upper(tensor_instruction_type) = 'TRANSPOSE') AS transposes,
  coalesce(sum(duration_ns) FILTER (WHERE upper(tensor_instruction_type) = 'TRANSPOSE'), 0)::BIGINT AS transpose_ns,
  sum(adjusted_flops) FILTER (WHERE upper(tensor_instruction_type) = 'TRANSPOSE')::DOUBLE / nullif(sum(adjusted_flops), 0) AS flops_share
FROM neuron.Instruction WHERE {scope.profile(core)} AND coalesce(pcore_idx, 0) = {core.core}""",
        _transposes(scope, core) + " ORDER BY e.duration_ns DESC",
    )
    return [
        Draft(
            title=f"Transposes on the Tensor engine of {name_of(core)}",
            line_times_ns=scope.lines(
                f"SELECT event_id, duration_ns AS ns FROM ({_transposes(scope, core)})"
            ),
            saving=bound(time_ns, 0.6, 0.2),
            evidence=[evidence],
            advice="Store the operand in the layout that the matmul needs (contraction dimension on partitions), transpose weights once ahead of time, or transpose during the DMA.",
            affected=_transposes(scope, core),
            side="device",
            confidence="medium",
            key=name_of(core),
        )
    ]


def _transposes(scope: NeuronScope, core: CoreLanes) -> str:
    return f"""SELECT e.start_ns, e.duration_ns, e.event_id FROM neuron.Instruction i
JOIN neuron.EventOffsets o ON o.rank = i.rank AND o.profile = i.profile AND o.table_name = 'Instruction'
JOIN events e ON e.rank = i.rank AND e.event_id = i.id + o.id_offset
WHERE {scope.profile(core, "i")} AND coalesce(i.pcore_idx, 0) = {core.core} AND upper(i.tensor_instruction_type) = 'TRANSPOSE'"""


RULE = Rule(
    name="neuron_transposes",
    title="Transposes",
    specificity=3,
    needs=("neuron",),
    check=check,
    settings=(
        Setting(
            "flops_share",
            0.10,
            "Part of the Tensor engine's flops that are transposes",
            "AWS Neuron Explorer's summary page: insight above 10 %; users in public notes warn at 2 %",
        ),
    ),
)
