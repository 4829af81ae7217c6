"""Eager execution launches many tiny compiled graphs, and the core waits between them."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.analysis.neuron.rule_scope import bound
from explorer.analysis.rule import Draft, Rule, Setting
from explorer.analysis.rule_context import RuleContext


def check(context: RuleContext) -> Sequence[Draft]:
    runs = f"""SELECT e.event_id, e.start_ns, e.duration_ns, e.launch_id, e.step, t.device_index,
  lead(e.start_ns) OVER (PARTITION BY t.device_index, e.step ORDER BY e.start_ns, e.event_id) AS next_ns
FROM events e JOIN tracks t ON t.rank = e.rank AND t.track_id = e.track_id
WHERE {context.where()} AND e.name = 'nc_exec_running' AND t.device_type = 'neuron'"""
    gaps = f"""SELECT start_ns + duration_ns AS start_ns, next_ns - start_ns - duration_ns AS duration_ns
FROM ({runs}) WHERE next_ns > start_ns + duration_ns"""
    evidence, row = context.evidence(
        "{executions} executions per step, {median_ns} each at the median; the core waits {gap_ns} per step between them.",
        f"""SELECT count(*) / {context.count} AS executions, coalesce(median(duration_ns), 0)::BIGINT AS median_ns,
  (coalesce((SELECT sum(duration_ns) FROM ({gaps})), 0) / {context.count} / greatest(1, count(DISTINCT device_index)))::BIGINT AS gap_ns
FROM ({runs})""",
        f"SELECT event_id FROM ({runs}) ORDER BY next_ns - start_ns - duration_ns DESC NULLS LAST",
    )
    if row["executions"] < context.setting(RULE, "executions") or row["median_ns"] > context.setting(
        RULE, "median_ns"
    ):
        return []
    lines = context.rows(
        f"""SELECT l.site_id, (sum(l.share * (r.next_ns - r.start_ns - r.duration_ns)) / {context.count})::BIGINT AS ns FROM ({runs}) r
        JOIN event_lines l ON l.rank = {context.scope.rank} AND l.event_id = r.event_id
        WHERE r.next_ns > r.start_ns + r.duration_ns GROUP BY l.site_id ORDER BY ns DESC, l.site_id LIMIT 5"""
    )
    return [
        Draft(
            title="Many tiny graphs: eager execution on Neuron",
            line_times_ns={item["site_id"]: item["ns"] for item in lines},
            saving=bound(row["gap_ns"], 0.8),
            evidence=[evidence],
            advice='Compile the step: torch.compile(model, backend="neuron"). Where it must stay eager, avoid what ends a fusion group: .item(), print and other reads of values inside the loop.',
            affected=gaps,
            side="device",
            confidence="high",
        )
    ]


RULE = Rule(
    name="neuron_tiny_executions",
    title="Many tiny graphs",
    specificity=2,
    needs=("neuron_system",),
    check=check,
    settings=(
        Setting(
            "executions",
            50,
            "Executions per step and rank from which they are many",
            "public notes on eager runs count hundreds of graphs per step; compiled ones a few",
        ),
        Setting(
            "median_ns",
            100_000,
            "Median execution below which they are tiny",
            "launch and wait cost tens of microseconds each; ours",
        ),
    ),
)
