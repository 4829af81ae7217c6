"""Communication that no compute overlaps."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.analysis.exposed import chosen_events, devices, exposed
from explorer.analysis.phrase import duration_text
from explorer.analysis.rule import Draft, Rule, Setting
from explorer.analysis.rule_context import RuleContext
from explorer.model.finding import Saving


def check(context: RuleContext) -> Sequence[Draft]:
    drafts = []
    for name, same in devices(context, "collective"):
        calls = chosen_events(context, same, "collective")
        alone = exposed(context, same, "collective")
        evidence, row = context.evidence(
            "{calls} collectives per step run {total_ns} per step, of which {exposed_ns} overlap nothing; the median message is {message_bytes}.",
            f"""SELECT (SELECT count(*) FROM ({calls})) / {context.count} AS calls,
  (SELECT coalesce(sum(duration_ns), 0) / {context.count} FROM ({calls}))::BIGINT AS total_ns,
  (coalesce(sum(duration_ns), 0) / {context.count})::BIGINT AS exposed_ns,
  (SELECT median(coalesce(c.size_bytes, x.size_bytes)) FROM ({calls}) x LEFT JOIN collectives c
     ON c.rank = {context.scope.rank} AND c.event_id = x.event_id) AS message_bytes FROM ({alone})""",
            f"SELECT event_id FROM ({calls}) ORDER BY duration_ns DESC, event_id",
        )
        waiting_ns = min(_waiting_ns(context), row["exposed_ns"])
        exposed_ns = row["exposed_ns"] - waiting_ns
        if exposed_ns < context.setting(RULE, "exposed_share") * context.scope.mean_ns:
            continue
        small = row["message_bytes"] is not None and row["message_bytes"] < context.setting(
            RULE, "small_bytes"
        )
        small = small and row["calls"] >= context.setting(RULE, "small_calls")
        lines = context.rows(
            f"""SELECT site_id, (sum(duration_ns) / {context.count})::BIGINT AS time_ns FROM ({calls})
            WHERE site_id IS NOT NULL GROUP BY site_id ORDER BY time_ns DESC, site_id LIMIT 5"""
        )
        drafts.append(
            Draft(
                title=f"Exposed communication on {name}" + (" in many small messages" if small else ""),
                line_times_ns={item["site_id"]: item["time_ns"] for item in lines},
                saving=Saving(low=exposed_ns // 4, expected=round(0.6 * exposed_ns), high=exposed_ns),
                evidence=[evidence],
                advice=(
                    "Merge the messages: larger buckets (DDP bucket_cap_mb, FSDP wrapping by block), coalescing of all-reduces. "
                    if small
                    else "Let it overlap compute: DDP with gradient_as_bucket_view and static_graph, FSDP forward and backward prefetch, "
                    "async_op=True with a wait just before the result is used. "
                )
                + "If one rank is slower than the others, the wait is inside the collective: compare the ranks first.",
                affected=f"SELECT event_id, start_ns, duration_ns FROM ({calls})",
                remaining_share=0.4,
                side="device",
                confidence="medium",
                caveats=[_caveat(context, waiting_ns)],
                key=name,
            )
        )
    return drafts


def _waiting_ns(context: RuleContext) -> int:
    """Waiting for late ranks per step: no overlap makes a late rank arrive earlier."""
    if "ranks" not in context.has:
        return 0
    row = context.of_job.row(
        f"SELECT coalesce(avg(wait_ns), 0)::BIGINT AS wait_ns FROM rank_waits w WHERE {context.where('w')}"
    )
    return int(row["wait_ns"])


def _caveat(context: RuleContext, waiting_ns: int) -> str:
    if "ranks" not in context.has:
        return "Waiting for a slower rank counts as communication here: the run holds one rank only."
    return f"{duration_text(waiting_ns)} per step of it is waiting for late ranks, which is not counted here."


RULE = Rule(
    name="exposed_communication",
    title="Exposed communication",
    specificity=2,
    needs=("device", "collectives"),
    check=check,
    settings=(
        Setting(
            "exposed_share", 0.05, "Smallest part of the step", "TraceLens: exposed communication over 5 %"
        ),
        Setting(
            "small_bytes",
            1_000_000,
            "Median message below which they count as small",
            "DDP's default bucket is 25 MB; below 1 MB latency rules",
        ),
        Setting("small_calls", 10, "Fewest collectives per step for that", "ours"),
    ),
)
