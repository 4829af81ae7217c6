"""The ranks of a job have uneven work: each step one of them, not always the same, computes longer than the others."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.analysis.ranks.given_work import WORK_KINDS, given_work
from explorer.analysis.ranks.stragglers import stragglers
from explorer.analysis.rule import Draft, NotChecked, Rule, Setting
from explorer.analysis.rule_context import RuleContext
from explorer.model.finding import Saving

_STEPS = """SELECT step, max(compute_ns) AS most_ns, avg(compute_ns) AS mean_ns, arg_max(rank, compute_ns) AS rank
FROM rank_waits WHERE complete AND NOT disturbed GROUP BY step HAVING count(*) > 1 AND max(compute_ns) > 0"""

_TITLES = {
    "experts": "Uneven load of experts across ranks",
    "inputs": "Uneven numbers of tokens or samples across ranks",
}
_ADVICE = {
    "experts": "Ranks that exchange more in their all-to-alls compute longer: the router sends some experts more tokens than others. "
    "Raise the load-balancing loss, cap the tokens per expert (capacity factor), or spread busy experts over ranks.",
    "inputs": "Ranks that are given more tokens or samples compute longer: sequence lengths or batches differ. Sort or bucket samples by "
    "length, balance tokens instead of samples across ranks, or pack sequences.",
    "same": "The same rank computes longest in every step: its share of the model or of the data is too large. Even out the shards, "
    "the experts or the pipeline stages.",
    "changing": "Which rank computes longest changes from step to step: batches differ in work. Sort or bucket samples by length, "
    "balance tokens instead of samples across ranks, or pad less.",
}


def check(context: RuleContext) -> Sequence[Draft] | NotChecked:
    if not context.rows("SELECT 1 FROM collective_waits WHERE ranks_seen > 1 LIMIT 1"):
        return NotChecked(RULE.name, "no communication call was recorded by more than one rank")
    waiting = context.row(
        """SELECT coalesce(sum(exposed_wait_ns) FILTER (operation IN ('send_recv', 'send', 'recv'))
          / nullif(sum(exposed_wait_ns), 0), 0) AS at_neighbours FROM collective_waits WHERE ranks_seen > 1"""
    )
    if waiting["at_neighbours"] > 0.5:
        return NotChecked(RULE.name, "the ranks are stages that wait for each other: see pipeline_bubble")
    evidence, row = context.evidence(
        "The busiest rank computes {most_ns} per step, the mean rank {mean_ns}: {imbalance_ns} of each step is uneven work.",
        f"""SELECT avg(most_ns)::BIGINT AS most_ns, avg(mean_ns)::BIGINT AS mean_ns,
  avg(most_ns - mean_ns)::BIGINT AS imbalance_ns, avg(most_ns) / avg(mean_ns) AS ratio, count(*) AS steps,
  count(DISTINCT rank) AS busiest_ranks FROM ({_STEPS})""",
    )
    if not row or not row.get("steps") or row["ratio"] < context.setting(RULE, "ratio"):
        return []
    waits = context.row(
        "SELECT coalesce(avg(w), 0)::BIGINT AS wait_ns FROM (SELECT step, avg(wait_ns) AS w FROM rank_waits WHERE complete AND NOT disturbed GROUP BY step)"
    )
    # Even work can save no more than the waiting that uneven work causes.
    saving_ns = min(row["imbalance_ns"], waits["wait_ns"])
    if saving_ns < context.setting(RULE, "share") * context.scope.mean_ns:
        return []
    explained = given_work(context)
    if explained:
        reason = explained[0]
    else:
        reason = "same" if row["busiest_ranks"] == 1 else "changing"
    busiest = context.rows(f"SELECT rank FROM ({_STEPS}) GROUP BY rank ORDER BY count(*) DESC, rank LIMIT 8")
    return [
        Draft(
            title=_TITLES.get(reason, RULE.title),
            line_times_ns=_lines(context),
            saving=Saving(saving_ns // 2, saving_ns, saving_ns),
            evidence=[evidence, *(explained[1:] if explained else ())],
            advice=_ADVICE[reason],
            affected=f"SELECT start_ns, wait_ns AS duration_ns FROM collective_waits WHERE rank = {context.scope.rank} AND wait_ns > 0",
            side="ranks",
            confidence="high" if explained else "medium",
            key="job",
            ranks=[item["rank"] for item in busiest],
        )
    ]


def _lines(context: RuleContext) -> dict[int, int]:
    """The lines at which late ranks compute longer than the others."""
    found: dict[int, int] = {}
    for item in stragglers(context.engine):
        for cause in item.causes:
            if cause.kind in WORK_KINDS and cause.site_id is not None:
                found[cause.site_id] = max(found.get(cause.site_id, 0), cause.more_ns)
    return dict(sorted(found.items(), key=lambda line: (-line[1], line[0]))[:3])


RULE = Rule(
    name="load_imbalance",
    title="Uneven work across ranks",
    specificity=2,
    needs=("ranks",),
    check=check,
    settings=(
        Setting(
            "ratio",
            1.1,
            "Smallest ratio of the busiest rank's compute time to the mean",
            "ours: below it, clocks and caches explain the difference",
        ),
        Setting("share", 0.02, "Smallest part of the step", "ours"),
    ),
)
