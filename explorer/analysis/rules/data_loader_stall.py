"""The training thread waits for the next batch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from explorer.analysis.paused_lines import pauses
from explorer.analysis.rule import Draft, Rule, Setting
from explorer.analysis.rule_context import RuleContext
from explorer.analysis.rule_sql import union_ns
from explorer.model.finding import Saving


def check(context: RuleContext) -> Sequence[Draft]:
    fetches = f"""SELECT e.start_ns, e.duration_ns, e.event_id FROM events e
WHERE {context.where()} AND e.category = 'data' AND e.track_id = {context.main_track}"""
    evidence, row = context.evidence(
        "The training thread spends {stall_ns} of each step getting {fetches} batches.",
        f"""SELECT (SELECT count(*) FROM ({fetches})) / {context.count} AS fetches,
  (union_ns / {context.count})::BIGINT AS stall_ns FROM ({union_ns(fetches)})""",
        fetches,
    )
    stall_ns = row["stall_ns"]
    if stall_ns < context.setting(RULE, "stall_share") * context.scope.mean_ns:
        return []
    if context.contended and _workers_keep_up(context, fetches, context.scope.mean_ns - stall_ns):
        # They were kept from running, as this thread was: on a machine of its own the batch is ready.
        return []
    waits = _waiting_lines(context, fetches)
    work = _lines_inside(context, waits)
    loading = {site: time for site, time in work.items() if site in _heavy(context, work)}
    inside = {} if loading else _lines_in_workers(context, fetches)
    in_workers = {site: inside[site] for site in _heavy(context, inside)}
    loading |= in_workers
    lines = {**loading, **{site: time for site, time in waits.items() if site not in loading}}
    in_process = bool(loading) and not in_workers
    handoff_ns = row["fetches"] * context.setting(RULE, "handoff_ns")
    compute_ns = max(0, context.scope.mean_ns - stall_ns)
    if in_process:
        workers = context.setting(RULE, "workers")
        # With w workers a step takes max(compute, loading / w): what remains of the stall is the excess.
        left_ns = max(0.0, stall_ns / workers - compute_ns) + handoff_ns
        advice = (
            "Load in worker processes: DataLoader(..., num_workers=4, persistent_workers=True, pin_memory=True on an "
            "accelerator), or do this work once before training."
        )
        heaviest = next(iter(loading))
        if context.is_user(heaviest):
            advice += f" The heaviest line is {context.place(heaviest)}: `{context.code(heaviest)}`; vectorise it or cache its result."
    else:
        left_ns = handoff_ns
        advice = (
            "The batch is not ready when it is asked for: add workers (num_workers), raise prefetch_factor, keep workers "
            "alive (persistent_workers=True), and make the dataset's transform cheaper."
        )
        if in_workers:
            heaviest = next(iter(in_workers))
            advice += f" The heaviest line inside the workers is {context.place(heaviest)}: `{context.code(heaviest)}`."
    expected = max(0, round(stall_ns - left_ns))
    return [
        Draft(
            title="The step waits for data",
            line_times_ns=lines,
            saving=Saving(low=expected // 2, expected=expected, high=stall_ns),
            evidence=[evidence],
            advice=advice,
            affected=fetches,
            remaining_share=1 - expected / stall_ns,
            confidence="high" if lines else "medium",
            caveats=["Workers need free CPU cores: on a machine without them the work only moves."]
            if in_process
            else [],
        )
    ]


def _lines_inside(context: RuleContext, waits: Iterable[int]) -> dict[int, int]:
    """Lines executed during fetches on the same thread, recorded time per step, most first.

    Where hot code made the recorder pause, what follows in the same fetch is the hot line's. A fetch that begins during a
    pause shows only the function that asked for the batch, which says nothing and is left out.
    """
    rank, track = context.scope.rank, context.main_track
    executed = f"""SELECT start_ns, start_ns + duration_ns AS end_ns, site_id, NULL AS paused_ns FROM host_states
  WHERE rank = {rank} AND track_id = {track} AND start_ns NOT IN (SELECT start_ns FROM paused)
UNION ALL SELECT start_ns, end_ns, site_id, start_ns AS paused_ns FROM paused"""
    # Of all steps, some of which show the hot line and others do not; quiet ones, so that an interrupted one does not choose.
    rows = context.rows(
        f"""WITH paused AS ({pauses(context)})
        SELECT site_id, quantile_cont(step_ns, 0.25)::BIGINT AS time_ns FROM (
          SELECT f.step, h.site_id, sum(least(h.end_ns, f.end_ns) - greatest(h.start_ns, f.start_ns)) AS step_ns
          FROM ({executed}) h JOIN (SELECT e.step, e.start_ns, e.start_ns + e.duration_ns AS end_ns FROM events e
            WHERE e.rank = {rank} AND e.category = 'data' AND e.track_id = {track}) f
          ON h.start_ns < f.end_ns AND h.end_ns > f.start_ns AND coalesce(h.paused_ns > f.start_ns, TRUE)
          WHERE h.site_id IS NOT NULL GROUP BY ALL)
        GROUP BY site_id ORDER BY time_ns DESC, site_id"""
    )
    asking = {_place(context, site) for site in waits}
    return _by_line(
        context,
        [
            row
            for row in rows
            if not (_is_definition(context, row["site_id"]) and _place(context, row["site_id"]) in asking)
        ],
    )


def _place(context: RuleContext, site_id: int) -> tuple[str, str]:
    site = context.codes[site_id]
    return site["file"], site["function"]


def _is_definition(context: RuleContext, site_id: int) -> bool:
    """A function's first line stands for the whole function where its lines were not recorded."""
    return context.code(site_id).lstrip().startswith(("def ", "async def "))


def _lines_in_workers(context: RuleContext, fetches: str) -> dict[int, int]:
    """Lines that DataLoader workers executed for the batches that were waited for, recorded time per step, most first."""
    work = _work_of_workers(context, fetches)
    rows = context.rows(
        f"""SELECT h.site_id, (sum(least(h.start_ns + h.duration_ns, w.end_ns) - greatest(h.start_ns, w.start_ns))
          / {context.count})::BIGINT AS time_ns
        FROM host_states h JOIN ({work}) w
        ON h.track_id = w.track_id AND h.start_ns < w.end_ns AND h.start_ns + h.duration_ns > w.start_ns
        WHERE h.rank = {context.scope.rank} AND h.site_id IS NOT NULL GROUP BY h.site_id ORDER BY time_ns DESC, h.site_id"""
    )
    return _by_line(context, rows)


def _work_of_workers(context: RuleContext, fetches: str) -> str:
    """SQL for what workers did for the batches of the fetches: track_id, start_ns, end_ns."""
    return f"""SELECT w.track_id, w.start_ns, w.start_ns + w.duration_ns AS end_ns FROM edges x
JOIN events w ON w.rank = x.rank AND w.event_id = x.source_id JOIN ({fetches}) f ON f.event_id = x.target_id
WHERE x.kind = 'data' AND x.rank = {context.scope.rank}"""


def _workers_keep_up(context: RuleContext, fetches: str, compute_ns: int) -> bool:
    """Whether the workers make a batch, shared among them, in less time than the rest of the step takes."""
    row = context.row(
        f"""SELECT median(end_ns - start_ns) AS batch_ns, count(DISTINCT track_id) AS workers
        FROM ({_work_of_workers(context, fetches)})"""
    )
    return bool(row["workers"]) and row["batch_ns"] / row["workers"] < compute_ns


def _by_line(context: RuleContext, rows: list[dict[str, Any]]) -> dict[int, int]:
    """Times of sites on the same line together, under the one that comes first."""
    merged: dict[tuple[str, int], dict[int, int]] = {}
    for row in rows:
        if site := context.codes.get(row["site_id"]):
            # A comprehension is a function of its own on the same line.
            merged.setdefault((site["file"], site["line"]), {})[row["site_id"]] = row["time_ns"]
    lines = {next(iter(times)): sum(times.values()) for times in merged.values()}
    return dict(sorted(lines.items(), key=lambda item: (-item[1], item[0])))


def _waiting_lines(context: RuleContext, fetches: str) -> dict[int, int]:
    """The lines that asked for the batches, by what the fetch events themselves say."""
    rows = context.rows(
        f"""SELECT coalesce(k.site_id, e.site_id) AS site_id, (sum(e.duration_ns) / {context.count})::BIGINT AS time_ns
        FROM events e LEFT JOIN stacks k ON k.stack_id = e.stack_id AND k.depth = 0
        WHERE {context.where()} AND e.event_id IN (SELECT event_id FROM ({fetches}))
        AND coalesce(k.site_id, e.site_id) IS NOT NULL GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 1"""
    )
    return {row["site_id"]: row["time_ns"] for row in rows}


def _heavy(context: RuleContext, work: dict[int, int]) -> list[int]:
    """Lines of loading code: those with a real share of the fetch that are not the loop that asks for the batch."""
    total = sum(work.values())
    share = context.setting(RULE, "line_share")
    heavy = [
        site
        for site, time in work.items()
        if time >= share * total
        and not context.code(site).lstrip().startswith(("for ", "async for ", "while "))
    ]
    exact = [site for site in heavy if not _is_definition(context, site)]
    return (exact or heavy)[:3]


RULE = Rule(
    name="data_loader_stall",
    title="Data loader stall",
    specificity=2,
    needs=("data",),
    check=check,
    settings=(
        Setting(
            "stall_share",
            0.05,
            "Smallest part of the step spent fetching",
            "TensorBoard plugin: DataLoader over 5 % of the step",
        ),
        Setting(
            "handoff_ns",
            200_000,
            "Time a batch still takes when a worker has it ready",
            "measured: queue get and unpickling of a small batch",
        ),
        Setting("workers", 4, "Workers assumed in the prediction", "common default of training scripts"),
        Setting("line_share", 0.1, "Smallest part of the fetch for a line to be named", "ours"),
    ),
)
