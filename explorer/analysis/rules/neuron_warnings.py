"""What AWS's profiler warns of: read before any number, since it says which numbers cannot be trusted."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.analysis.engine import literal
from explorer.analysis.rule import Draft, Rule, Setting
from explorer.analysis.rule_context import RuleContext
from explorer.model.finding import Saving

_ADVICE = (
    (
        ("dynamic dma", "dge", "dma trace"),
        "Transfers of dynamic queues are missing or unnamed, so DMA sums and causes of gaps are too small: record again with "
        "NEURON_RT_ENABLE_DGE_NOTIFICATIONS=1 (very large graphs overflow the notification queue with it).",
    ),
    (
        ("dropped", "overflow", "truncat", "buffer", "lost"),
        "Part of the trace was lost, so sums are too small: record fewer steps, or one core (capture_enabled_for_nc).",
    ),
    (
        ("source", "debug"),
        "Lines will be missing: compile with XLA_IR_DEBUG=1 XLA_HLO_DEBUG=1 NEURON_FRAMEWORK_DEBUG=1 (kernels: NKI_DEBUG_INFO=1).",
    ),
)
_GENERAL = (
    "Read it before the other findings: sums over what it names may be too small, and causes may be wrong."
)


def check(context: RuleContext) -> Sequence[Draft]:
    rank = context.scope.rank
    found = context.rows(
        f"""SELECT coalesce(category, '') AS category, message, count(*) AS times FROM neuron.Warning
        WHERE rank = {rank} AND message <> '' GROUP BY ALL HAVING times >= {context.setting(RULE, "rows"):.0f}
        ORDER BY times DESC, category, message"""
    )
    drafts = []
    for row in found:
        evidence, _ = context.evidence(
            "The profiler gives this warning {times} times in {profiles} profiles.",
            f"""SELECT count(*) AS times, count(DISTINCT profile) AS profiles FROM neuron.Warning
WHERE rank = {rank} AND coalesce(category, '') = {literal(row["category"])} AND message = {literal(row["message"])}""",
        )
        text = " ".join(str(row["message"]).split()).rstrip(".")
        lower = f"{row['category']} {text}".lower()
        drafts.append(
            Draft(
                title=f"The profiler warns: {text}",
                line_times_ns={},
                saving=Saving(0, 0, 0, "none"),
                evidence=[evidence],
                advice=next(
                    (advice for words, advice in _ADVICE if any(word in lower for word in words)), _GENERAL
                ),
                affected="",
                side="device",
                key=f"{row['category']} {text}",
                notice="medium",
            )
        )
    return drafts


RULE = Rule(
    name="neuron_warnings",
    title="Warnings of the profiler",
    specificity=3,
    needs=("neuron",),
    check=check,
    settings=(
        Setting(
            "rows",
            1,
            "Fewest rows with a message",
            "public profiling skills of AWS: table Warning is read before any metric, whatever it holds",
        ),
    ),
)
