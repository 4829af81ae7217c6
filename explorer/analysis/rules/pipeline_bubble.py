"""Pipeline stages stand idle while the pipeline fills and drains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from explorer.analysis.ranks.pipeline_schedule import pipelines
from explorer.analysis.ranks.stragglers import causes
from explorer.analysis.rule import Draft, NotChecked, Rule, Setting
from explorer.analysis.rule_context import RuleContext
from explorer.model.finding import Saving

_PAIRS = "operation IN ('send_recv', 'send', 'recv')"


UNEVEN = 1.1
"""A stage that works this many times as long as the median one is named."""


def check(context: RuleContext) -> Sequence[Draft] | NotChecked:
    if not context.rows(f"SELECT 1 FROM collective_waits WHERE {_PAIRS} AND ranks_seen > 1 LIMIT 1"):
        return NotChecked(RULE.name, "the ranks exchange no point-to-point messages: there is no pipeline")
    chosen = f"""SELECT w.rank, w.event_id, w.start_ns, w.wait_ns AS duration_ns, w.site_id FROM collective_waits w
WHERE {context.scope.where_steps("w")} AND w.{_PAIRS} AND w.wait_ns > w.residual_ns"""
    ranks = len(context.engine.reader.ranks)
    evidence, row = context.evidence(
        "A stage waits {wait_ns} of each step for its neighbours on average; rank {worst_rank} waits {worst_ns}.",
        f"""SELECT (sum(time_ns) / {ranks})::BIGINT AS wait_ns, max(time_ns) AS worst_ns, arg_max(rank, time_ns) AS worst_rank
FROM (SELECT rank, (sum(duration_ns) / {context.count})::BIGINT AS time_ns FROM ({chosen}) GROUP BY rank)""",
    )
    wait_ns = int(row.get("wait_ns") or 0)
    if wait_ns < context.setting(RULE, "share") * context.scope.mean_ns:
        return []
    sites = context.rows(
        f"""SELECT site_id, (sum(duration_ns) / {context.count * ranks})::BIGINT AS time_ns FROM ({chosen})
        WHERE site_id IS NOT NULL GROUP BY site_id ORDER BY time_ns DESC, site_id LIMIT 3"""
    )
    stages, slowest = context.evidence(
        "Without waiting, rank {slowest_rank} works {most_ns} per step, the median rank {usual_ns}.",
        """SELECT arg_max(rank, own_ns) AS slowest_rank, max(own_ns)::BIGINT AS most_ns, median(own_ns)::BIGINT AS usual_ns
FROM (SELECT rank, median(own_ns) AS own_ns FROM rank_waits WHERE complete AND NOT disturbed GROUP BY rank)""",
    )
    return [
        Draft(
            title="Pipeline stages wait for each other",
            line_times_ns={site["site_id"]: site["time_ns"] for site in sites},
            saving=Saving(wait_ns // 4, wait_ns // 2, wait_ns),
            evidence=[evidence, stages],
            advice=_schedules(context)
            + _slowest_stage(context, slowest)
            + "Split the batch into more microbatches (the bubble of a pipeline of p stages and m microbatches is (p-1)/(m+p-1)), use 1F1B or an interleaved schedule instead of GPipe, and even out the stages.",
            affected=f"SELECT start_ns, duration_ns FROM ({chosen}) WHERE rank = {context.scope.rank}",
            remaining_share=0.5,
            side="ranks",
            confidence="medium",
            key="job",
            ranks=[
                item["rank"] for item in context.rows(f"SELECT DISTINCT rank FROM ({chosen}) ORDER BY rank")
            ],
        )
    ]


def _slowest_stage(context: RuleContext, row: Mapping[str, Any]) -> str:
    """Where the stage loses its time that the others wait for; empty where the stages are even."""
    if not row or (row["most_ns"] or 0) < UNEVEN * (row["usual_ns"] or 0):
        return ""
    rank = row["slowest_rank"]
    found = next((cause for cause in causes(context.engine, {rank: None}).get(rank, []) if cause.file), None)
    where = (
        f", {found.more_ns / 1e6:.2f} ms of it in {found.kind} at {found.file}:{found.line}" if found else ""
    )
    return f"The stage of rank {rank} takes longest{where}. "


def _schedules(context: RuleContext) -> str:
    """What the pipelines ran, and the bubble that cannot be avoided with it."""
    return "".join(
        f"Ranks {', '.join(map(str, one.ranks))} run {one.schedule} with {one.microbatches} microbatches, whose bubble is at least {one.least_bubble:.0%}. "
        for one in pipelines(context.engine)[:3]
    )


RULE = Rule(
    name="pipeline_bubble",
    title="Pipeline stages wait for each other",
    specificity=2,
    needs=("ranks",),
    check=check,
    settings=(Setting("share", 0.05, "Smallest part of the step a stage waits", "ours"),),
)
