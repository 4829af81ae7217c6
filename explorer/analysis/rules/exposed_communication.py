"""Communication that no compute hides."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.analysis.rule import Draft, NotChecked, Rule, Setting
from explorer.analysis.rule_context import RuleContext
from explorer.model.finding import Saving


def check(context: RuleContext) -> Sequence[Draft] | NotChecked:
    evidence, row = context.evidence(
        "{exposed_ns} of each step only communication runs, of {communication_ns} of communication in all.",
        f"""SELECT avg(exposed_communication_ns)::BIGINT AS exposed_ns, avg(communication_ns)::BIGINT AS communication_ns,
  avg(compute_ns)::BIGINT AS compute_ns FROM rank_steps WHERE {context.where("rank_steps")}""",
    )
    if not row or not row.get("exposed_ns"):
        return []
    if row["exposed_ns"] < context.setting(RULE, "share") * context.scope.mean_ns:
        return []
    waits = context.row(
        f"SELECT coalesce(avg(wait_ns), 0)::BIGINT AS wait_ns FROM rank_waits WHERE {context.where('rank_waits')}"
    )
    waiting = min(int(waits.get("wait_ns") or 0), row["exposed_ns"])
    transfer_ns = row["exposed_ns"] - waiting
    # Hidden under compute at best; waiting for a late rank does not shrink by overlapping.
    saving_ns = min(transfer_ns, row["compute_ns"])
    if saving_ns < context.setting(RULE, "share") * context.scope.mean_ns:
        return []
    sites = context.rows(
        f"""SELECT site_id, (sum(end_ns - start_ns) / {context.count})::BIGINT AS time_ns FROM rank_collectives c
        WHERE {context.where("c")} AND site_id IS NOT NULL GROUP BY site_id ORDER BY time_ns DESC, site_id LIMIT 3"""
    )
    caveats = []
    if waiting:
        caveats.append(
            f"{waiting / 1e6:.2f} ms per step of it is waiting for late ranks, which is not counted here."
        )
    return [
        Draft(
            title="Communication is not hidden under compute",
            line_times_ns={site["site_id"]: site["time_ns"] for site in sites},
            saving=Saving(saving_ns // 3, round(saving_ns * 0.6), saving_ns),
            evidence=[evidence],
            advice="Start it earlier and let compute go on: DDP overlaps by itself unless buckets are too large or gradients are used at once; with FSDP raise prefetching (set_modules_to_forward_prefetch); call collectives with async_op=True and wait where the result is needed.",
            affected=f"""SELECT c.event_id, c.start_ns, c.end_ns - c.start_ns AS duration_ns FROM rank_collectives c WHERE {context.where("c")}""",
            remaining_share=0.4,
            side="device",
            confidence="medium",
            caveats=caveats,
            key="job",
        )
    ]


RULE = Rule(
    name="exposed_communication",
    title="Communication is not hidden under compute",
    specificity=1,
    needs=("collectives",),
    check=check,
    settings=(
        Setting(
            "share",
            0.05,
            "Smallest part of the step in which only communication runs",
            "TraceLens reports exposed communication above 5 %",
        ),
    ),
)
