"""One pair of ranks, or one group, moves its messages much slower than others of its kind."""

from __future__ import annotations

import json
from collections.abc import Sequence

from explorer.analysis.rule import Draft, NotChecked, Rule, Setting
from explorer.analysis.rule_context import RuleContext
from explorer.model.finding import Saving

# Bandwidth of each set of ranks that exchanged messages of one operation and size: a pair, or the ranks of a group.
_LINKS = """SELECT members, operation, size_bytes, count(*) AS calls, median(latency_ns)::BIGINT AS latency_ns, min(match_id) AS match_id
FROM (SELECT match_id, any_value(operation) AS operation, max(size_bytes) AS size_bytes,
        list_sort(list(rank))::VARCHAR AS members, max(end_ns) - max(last_arrival_ns) AS latency_ns,
        max(residual_ns) AS residual_ns
      FROM collective_waits WHERE ranks_seen > 1 GROUP BY match_id)
WHERE size_bytes > 0 AND latency_ns > 2 * residual_ns GROUP BY members, operation, size_bytes"""


def check(context: RuleContext) -> Sequence[Draft] | NotChecked:
    calls = context.setting(RULE, "calls")
    ratio = context.setting(RULE, "ratio")
    compared = f"""SELECT *, median(latency_ns) OVER kind AS usual_ns, count(*) OVER kind AS links FROM ({_LINKS})
WHERE calls >= {calls:.0f} WINDOW kind AS (PARTITION BY operation, size_bytes)"""
    if not context.rows(f"SELECT 1 FROM ({compared}) WHERE links > 2 LIMIT 1"):
        return NotChecked(
            RULE.name, "fewer than three links carried messages of one kind and size often enough to compare"
        )
    drafts = []
    slow = context.rows(
        f"""SELECT members, sum(calls * (latency_ns - usual_ns))::BIGINT AS lost_ns FROM ({compared})
        WHERE links > 2 AND latency_ns >= {ratio} * usual_ns GROUP BY members ORDER BY lost_ns DESC, members"""
    )
    for item in slow:
        members = str(item["members"])
        evidence, _ = context.evidence(
            f"Between ranks {members} a message takes {{latency_ns}}, {{ratio}} times as long as between others.",
            f"""SELECT median(latency_ns)::BIGINT AS latency_ns, round(median(latency_ns / usual_ns), 2) AS ratio,
  sum(calls)::BIGINT AS calls FROM ({compared}) WHERE members = '{members}' AND latency_ns >= {ratio} * usual_ns""",
        )
        per_step = item["lost_ns"] // max(1, context.count)
        if per_step < context.setting(RULE, "share") * context.scope.mean_ns:
            continue
        drafts.append(
            Draft(
                title=f"Slow link between ranks {members}",
                line_times_ns={},
                saving=Saving(per_step // 3, per_step // 2, per_step),
                evidence=[evidence],
                advice="Look at the link: cable, port errors, PCIe or NUMA placement, another job on the switch. Test it alone, and move the ranks to see whether the slowness moves with the host.",
                affected=f"""SELECT start_ns, wait_ns + transfer_ns AS duration_ns FROM collective_waits w
WHERE rank = {context.scope.rank} AND match_id IN (SELECT match_id FROM ({compared}) WHERE members = '{members}')""",
                side="ranks",
                confidence="medium",
                key=members,
                ranks=json.loads(members),
            )
        )
    return drafts


RULE = Rule(
    name="slow_link",
    title="A slow link",
    specificity=2,
    needs=("ranks",),
    check=check,
    settings=(
        Setting("ratio", 2.0, "How many times the usual latency a link must take", "ours"),
        Setting("calls", 5, "Fewest messages of one kind and size per link", "ours"),
        Setting("share", 0.01, "Smallest part of the step lost", "ours"),
    ),
)
