"""Communication in many small messages, whose fixed cost outweighs their bytes."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.analysis.rule import Draft, NotChecked, Rule, Setting
from explorer.analysis.rule_context import RuleContext
from explorer.model.finding import Saving

_EXCHANGES = "('all_reduce', 'all_gather', 'reduce_scatter', 'all_to_all', 'broadcast', 'reduce')"


def check(context: RuleContext) -> Sequence[Draft] | NotChecked:
    rank = context.scope.rank
    if not context.rows(
        f"SELECT 1 FROM rank_collectives WHERE rank = {rank} AND size_bytes IS NOT NULL LIMIT 1"
    ):
        return NotChecked(RULE.name, "the run does not say how large its messages are")
    small = context.setting(RULE, "small_bytes")
    exposed = context.row(
        f"SELECT (avg(exposed_communication_ns + CASE WHEN device = 'cpu' THEN communication_ns ELSE 0 END))::BIGINT AS exposed_ns FROM rank_steps WHERE {context.where('rank_steps')}"
    )
    drafts = []
    groups = context.rows(
        f"""SELECT site_id, count(*) AS calls FROM rank_collectives c
        WHERE {context.where("c")} AND size_bytes < {small:.0f} AND operation IN {_EXCHANGES}
        GROUP BY site_id HAVING count(*) >= {context.setting(RULE, "calls") * context.count:.0f} ORDER BY calls DESC, site_id"""
    )
    for site in (row["site_id"] for row in groups):
        chosen = f"""SELECT c.event_id, c.start_ns, c.end_ns - c.start_ns AS duration_ns, c.size_bytes FROM rank_collectives c
WHERE {context.where("c")} AND c.size_bytes < {small:.0f} AND c.operation IN {_EXCHANGES}
  AND c.site_id IS NOT DISTINCT FROM {"NULL" if site is None else site}"""
        evidence, row = context.evidence(
            "{calls} small messages per step, {total_bytes} together, take {time_ns} of each step.",
            f"""SELECT count(*) / {context.count} AS calls, (sum(size_bytes) / {context.count})::BIGINT AS total_bytes,
  (sum(duration_ns) / {context.count})::BIGINT AS time_ns FROM ({chosen})""",
            f"SELECT event_id FROM ({chosen}) ORDER BY duration_ns DESC, event_id",
        )
        # One message of the same bytes keeps one call's cost; only exposed communication can be won back.
        saving_ns = min(round(row["time_ns"] * (1 - 1 / max(1.0, row["calls"]))), exposed["exposed_ns"] or 0)
        if saving_ns <= 0:
            continue
        drafts.append(
            Draft(
                title=f"Many small messages at {context.place(site)}",
                line_times_ns={site: row["time_ns"]} if site is not None else {},
                saving=Saving(saving_ns // 3, saving_ns // 2, saving_ns),
                evidence=[evidence],
                advice="Send fewer, larger messages: flatten tensors into one buffer, raise DDP's bucket_cap_mb, or coalesce the calls (torch.distributed._coalescing_manager).",
                affected=f"SELECT event_id, start_ns, duration_ns FROM ({chosen})",
                remaining_share=1 / max(1.0, row["calls"]),
                side="device",
                confidence="medium",
                key="" if site is not None else "unknown line",
            )
        )
    return drafts


RULE = Rule(
    name="small_collectives",
    title="Many small messages",
    specificity=2,
    needs=("collectives",),
    check=check,
    settings=(
        Setting(
            "small_bytes",
            262_144,
            "Messages below this many bytes are small",
            "ours: below about 256 KiB the fixed cost of a ring exceeds its transfer on current links",
        ),
        Setting("calls", 8, "Fewest small messages per step from one line", "ours"),
    ),
)
