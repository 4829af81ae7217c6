"""Files are read or written on the training thread inside the step."""

from __future__ import annotations

import re
from collections.abc import Sequence

from explorer.analysis.rule import Draft, Rule, Setting
from explorer.analysis.rule_context import RuleContext
from explorer.analysis.rule_sql import states_at, union_ns
from explorer.model.finding import Saving

_FILE_WORK = re.compile(
    r"(?i)open|load|save|read|write|dump|flush|close|fromfile|tofile|to_csv|parquet|imread|log|print"
)


def check(context: RuleContext) -> Sequence[Draft]:
    base = f"""FROM events e LEFT JOIN stacks k ON k.stack_id = e.stack_id AND k.depth = 0
WHERE {context.scope.where_all("e")} AND e.category = 'io' AND e.track_id = {context.main_track}
  AND e.phase IS DISTINCT FROM 'data'"""
    # A checkpoint each hundredth step makes an outlier step, so these count all complete steps but the first.
    steps = max(1, len(context.scope.later_numbers))
    rows = context.rows(
        f"""SELECT coalesce(k.site_id, e.site_id) AS site_id, sum(e.duration_ns) AS time_ns {base}
        GROUP BY 1 ORDER BY time_ns DESC, site_id"""
    )
    functions: dict[tuple[str, str], dict[int | None, int]] = {}
    for row in rows:
        site = context.codes.get(row["site_id"] or 0)
        place = (site["file"], site["function"]) if site else ("", "")
        functions.setdefault(place, {})[row["site_id"]] = row["time_ns"]
    drafts = []
    for (file, function), times in functions.items():
        draft = _draft(context, base, steps, f"{function} ({file})" if function else "", times)
        if draft.saving.expected >= context.setting(RULE, "io_share") * context.scope.mean_ns:
            drafts.append(draft)
    return drafts


def _draft(context: RuleContext, base: str, steps: int, place: str, times: dict[int | None, int]) -> Draft:
    sites = [site for site in times if site is not None]
    here = context.in_sites("coalesce(k.site_id, e.site_id)", sites)
    calls = f"SELECT e.start_ns, e.duration_ns, e.event_id, e.size_bytes {base} AND {here if sites else 'coalesce(k.site_id, e.site_id) IS NULL'}"
    # A line that exists for its file: opening, encoding and serialising around the calls go with them.
    whole = [site for site in sites if _FILE_WORK.search(context.code(site))]
    states = states_at(
        context.scope.rank,
        context.main_track,
        context.scope.where_all("s"),
        context.in_sites("h.site_id", whole),
    )
    affected = (
        f"SELECT start_ns, duration_ns FROM ({calls}) UNION ALL SELECT start_ns, duration_ns FROM ({states})"
    )
    evidence, row = context.evidence(
        "{calls} file calls per step ({moved_bytes} per step) take {io_ns} of the training thread, and their lines {lines_ns} per step.",
        f"""SELECT (SELECT count(*) FROM ({calls})) / {steps} AS calls,
  (SELECT coalesce(sum(size_bytes), 0) FROM ({calls})) / {steps} AS moved_bytes,
  (SELECT union_ns / {steps} FROM ({union_ns(calls)}))::BIGINT AS io_ns,
  (SELECT union_ns / {steps} FROM ({union_ns(affected)}))::BIGINT AS lines_ns""",
        calls,
    )
    lines = context.rows(
        f"SELECT site_id, (sum(duration_ns) / {steps})::BIGINT AS time_ns FROM ({states}) GROUP BY 1 ORDER BY 2 DESC, 1"
    )
    line_times = {item["site_id"]: item["time_ns"] for item in lines} or {
        site: round(time / steps) for site, time in times.items() if site is not None
    }
    return Draft(
        title=f"File I/O inside the step in {place}" if place else "File I/O inside the step",
        line_times_ns=line_times,
        saving=Saving(low=row["io_ns"], expected=row["lines_ns"], high=row["lines_ns"]),
        evidence=[evidence],
        advice=_advice(context.code(next(iter(line_times), None))),
        affected=affected,
        key=place or "unknown",
    )


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
            "io_share", 0.01, "Smallest part of the step in one function", "ours: below 1 % nothing is gained"
        ),
    ),
)
