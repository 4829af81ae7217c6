"""Other programs used the processor while the program was recorded."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.analysis.phrase import fill
from explorer.analysis.rule import Draft, NotChecked, Rule
from explorer.analysis.rule_context import RuleContext
from explorer.model.finding import Evidence, Saving


def check(context: RuleContext) -> Sequence[Draft] | NotChecked:
    seen = context.contention
    if not seen.is_known:
        return NotChecked(RULE.name, "the run holds no telemetry of the machine's processors")
    if not seen.sentence:
        return []
    also = "" if seen.medians["children"] is None else ", and processes it started {children} %"
    statement = (
        f"The machine's processors were {{machine}} % busy, and this program had {{process}} % of one{also}."
    )
    evidence = Evidence(fill(statement, seen.medians), seen.sql)
    return [
        Draft(
            title="Other programs took the processor",
            line_times_ns={},
            saving=Saving(0, 0, 0, "none"),
            evidence=[evidence],
            advice="Record again on a quiet machine before trusting shares: stop other jobs, or give this one its own cores "
            "(taskset, cgroups, Slurm's --cpus-per-task).",
            affected="",
            confidence="medium",
            key="contention",
            notice="low",
        )
    ]


RULE = Rule(
    name="contention",
    title="Contention with other programs",
    specificity=1,
    needs=("counters",),
    check=check,
)
