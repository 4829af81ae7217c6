"""Files are read or written on the training thread inside the step."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.analysis.rule import Draft, Rule, Setting
from explorer.analysis.rule_context import RuleContext
from explorer.analysis.rule_sql import union_ns
from explorer.model.finding import Saving


def check(context: RuleContext) -> Sequence[Draft]:
    base = f"""FROM events e LEFT JOIN stacks k ON k.stack_id = e.stack_id AND k.depth = 0
WHERE {context.scope.where_all("e")} AND e.category = 'io' AND e.track_id = {context.main_track}
  AND e.phase IS DISTINCT FROM 'data'"""
    # A checkpoint each hundredth step makes an outlier step, so these count all complete steps.
    steps = max(1, len(context.scope.all_numbers))
    sites = context.rows(
        f"""SELECT coalesce(k.site_id, e.site_id) AS site_id, sum(e.duration_ns) AS time_ns {base}
        GROUP BY 1 ORDER BY time_ns DESC, site_id"""
    )
    smallest = context.setting(RULE, "io_share") * context.scope.mean_ns * steps
    drafts = []
    for site in (row["site_id"] for row in sites if row["time_ns"] >= smallest):
        calls = f"SELECT e.start_ns, e.duration_ns, e.event_id, e.name, e.size_bytes {base} AND coalesce(k.site_id, e.site_id) IS NOT DISTINCT FROM {site or 'NULL'}"
        evidence, row = context.evidence(
            "{calls} file calls per step ({moved_bytes} per step) at this line hold the training thread for {io_ns} per step.",
            f"""SELECT (SELECT count(*) FROM ({calls})) / {steps} AS calls,
  (SELECT coalesce(sum(size_bytes), 0) FROM ({calls})) / {steps} AS moved_bytes,
  (union_ns / {steps})::BIGINT AS io_ns FROM ({union_ns(calls)})""",
            calls,
        )
        io_ns = row["io_ns"]
        drafts.append(
            Draft(
                title=f"File I/O inside the step at {context.place(site)}",
                line_times_ns={site: io_ns} if site else {},
                saving=Saving(low=round(0.7 * io_ns), expected=io_ns, high=round(1.2 * io_ns)),
                evidence=[evidence],
                advice=_advice(context.code(site)),
                affected=calls,
                caveats=["The time around the calls (encoding, serialising) is not counted here."],
                key="" if site else "unknown",
            )
        )
    return drafts


def _advice(code: str) -> str:
    text = f"`{code}` " if code else "This line "
    if "save" in code or "dump" in code:
        return (
            text
            + "writes inside the step: save every few hundred steps, and hand the copy to a thread (torch.distributed.checkpoint.async_save, or a writer thread)."
        )
    if "load" in code or "read" in code or "open(" in code:
        return (
            text
            + "touches a file inside the step: read it once before the loop, memory-map it, or move it into the Dataset so that workers do it."
        )
    return (
        text
        + "does file I/O inside the step: collect the records and write them every N steps, without flush or fsync, or from a background thread."
    )


RULE = Rule(
    name="io_in_step",
    title="File I/O inside the step",
    specificity=3,
    needs=("io",),
    check=check,
    settings=(
        Setting(
            "io_share", 0.01, "Smallest part of the step at one line", "ours: below 1 % nothing is gained"
        ),
    ),
)
