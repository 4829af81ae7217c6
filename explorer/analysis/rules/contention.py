"""Other programs used the processor while the program was recorded."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.analysis.contention import samples
from explorer.analysis.rule import Draft, NotChecked, Rule
from explorer.analysis.rule_context import RuleContext
from explorer.model.finding import Saving


def check(context: RuleContext) -> Sequence[Draft] | NotChecked:
    known = context.row(
        f"SELECT count(DISTINCT name) AS n FROM counters WHERE rank = {context.scope.rank} AND name IN ('machine.cpu', 'process.cpu')"
    )
    if known["n"] < 2:
        return NotChecked(RULE.name, "the run holds no telemetry of the machine's processors")
    if not context.contended:
        return []
    evidence, _ = context.evidence(
        "The machine's processors were {machine} % busy, and this program had {process} % of one.",
        f"""SELECT round(median(value) FILTER (WHERE name = 'machine.cpu')) AS machine, round(median(value) FILTER (WHERE name = 'process.cpu')) AS process
FROM counters WHERE {samples(context.engine, context.scope)}""",
    )
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
