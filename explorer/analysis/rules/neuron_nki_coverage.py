"""A profile with NKI kernels in which most instructions come from somewhere else."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.analysis.neuron.rule_scope import NeuronScope, name_of
from explorer.analysis.rule import Draft, Rule, Setting
from explorer.analysis.rule_context import RuleContext
from explorer.model.finding import Saving


def check(context: RuleContext) -> Sequence[Draft]:
    scope = NeuronScope.of(context)
    drafts = []
    for core in scope.logical:
        where = scope.profile(core)
        row = context.row(
            f"""SELECT coalesce(sum(nki_instructions), 0)::BIGINT AS kernels, coalesce(sum(instructions), 0)::BIGINT AS instructions,
            (SELECT count(*) FROM neuron.KernelInstructions WHERE {where}) AS known FROM neuron_work WHERE {where}"""
        )
        if not row["instructions"] or not (row["kernels"] or row["known"]):
            continue
        if row["kernels"] / row["instructions"] >= context.setting(RULE, "coverage"):
            continue
        evidence, _ = context.evidence(
            "{kernels} of {instructions} instructions ({coverage_share}) of " + name_of(core) + " have NKI source: {engines}.",
            f"""SELECT sum(nki) AS kernels, sum(n) AS instructions, sum(nki) / sum(n) AS coverage_share,
  string_agg(engine || ' ' || round(100 * nki / n)::INTEGER || ' %', ', ' ORDER BY engine) AS engines
FROM (SELECT engine, sum(nki_instructions)::BIGINT AS nki, sum(instructions)::BIGINT AS n FROM neuron_work WHERE {where} GROUP BY engine)""",
        )  # fmt: skip
        lines = scope.lines(
            f"""SELECT i.id + o.id_offset AS event_id, coalesce(i.duration_ns, i.end_ts - i.start_ts) AS ns FROM neuron.Instruction AS i
            JOIN neuron.EventOffsets AS o ON o.rank = i.rank AND o.profile = i.profile AND o.table_name = 'Instruction'
            WHERE {scope.profile(core, "i")} AND coalesce(i.nki_source_location, '') = '' AND coalesce(i.kernel_instruction_name, '') = ''"""
        )
        drafts.append(
            Draft(
                title=f"Most instructions of {name_of(core)} come from no NKI kernel",
                line_times_ns=lines,
                saving=Saving(0, 0, 0, "none"),
                evidence=[evidence],
                advice="Where a kernel should do this work, check that the model calls it for these shapes and types, and compile with NKI_DEBUG_INFO=1: "
                "without it a kernel's own instructions carry no NKI source. Lines that are worth a kernel are the first of this finding.",
                affected="",
                side="device",
                confidence="medium",
                caveats=("A kernel compiled without debug information counts as none.",),
                key=name_of(core),
                notice="low",
            )
        )
    return drafts


RULE = Rule(
    name="neuron_nki_coverage",
    title="NKI coverage",
    specificity=1,
    needs=("neuron",),
    check=check,
    settings=(
        Setting(
            "coverage",
            0.5,
            "Part of the instructions with NKI source below which it is said, where a profile has kernels at all",
            "AWS Neuron Explorer's summary page: insight below 50 %",
        ),
    ),
)
