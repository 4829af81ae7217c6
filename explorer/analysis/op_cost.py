"""Cost of chosen outermost ops by source line and function, the common body of rules about one kind of op."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from explorer.analysis.rule_context import RuleContext
from explorer.model.finding import Evidence


@dataclass(frozen=True)
class FunctionCost:
    """Chosen ops of one function: time per step by line (worst first; empty: the run knows no lines), and the evidence.

    `selection` is SQL for the ops as rows (event_id, start_ns, duration_ns, site_id); of a run with device kernels, for the
    kernels that the ops launched, and `side` says so.
    """

    place: str
    line_times_ns: dict[int, int]
    calls: float
    time_ns: int
    evidence: Evidence
    selection: str
    side: str


def costs_by_function(
    context: RuleContext, condition: str, statement: str, smallest_share: float
) -> list[FunctionCost]:
    """Costs of the top_ops (alias `o`) that meet a condition, by the function of their executing line.

    Functions below `smallest_share` of the step are left out. `statement` may use {calls} and {time_ns}.
    """
    selection = f"""SELECT o.event_id, o.start_ns, o.duration_ns, o.executing_site_id AS site_id FROM top_ops o
WHERE {context.where("o")} AND ({condition})"""
    side = "host"
    if "kernels" in context.has:
        # The host only enqueues: what the op costs is the device time it causes.
        selection, side = device_time(context, selection), "device"
    rows = context.rows(
        f"""SELECT site_id, sum(duration_ns) AS time_ns FROM ({selection}) GROUP BY site_id ORDER BY time_ns DESC, site_id"""
    )
    functions: dict[tuple[str, str], dict[int | None, int]] = {}
    for row in rows:
        site = context.codes.get(row["site_id"] or 0)
        key = (site["file"], site["function"]) if site else ("", "")
        functions.setdefault(key, {})[row["site_id"]] = row["time_ns"]
    found = []
    smallest_ns = smallest_share * context.scope.total_ns
    for (file, function), times in functions.items():
        if sum(times.values()) < smallest_ns:
            continue
        here = _at(context, times)
        chosen = f"SELECT * FROM ({selection}) WHERE {here}"
        evidence, row = context.evidence(
            statement,
            f"""SELECT count(*) / {context.count} AS calls, (sum(duration_ns) / {context.count})::BIGINT AS time_ns FROM ({chosen})""",
            f"SELECT event_id FROM ({chosen}) ORDER BY duration_ns DESC, event_id",
        )
        found.append(
            FunctionCost(
                place=f"{function} ({file})" if function else "an unknown function",
                line_times_ns={site: round(time / context.count) for site, time in times.items() if site},
                calls=row["calls"],
                time_ns=row["time_ns"],
                evidence=evidence,
                selection=chosen,
                side=side,
            )
        )
    return found


def device_time(context: RuleContext, ops: str) -> str:
    """SQL for the device work that host ops launched: by the time of the launch call within the op.

    `ops` gives event_id, start_ns, duration_ns and site_id of ops of one thread, and so do the rows.
    """
    return f"""SELECT w.event_id, w.start_ns, w.duration_ns, o.site_id FROM (
  SELECT k.event_id, k.start_ns, k.duration_ns, l.start_ns AS launched_ns FROM events k JOIN events l ON l.rank = k.rank AND l.event_id = k.launch_id
  WHERE {context.where("k")} AND k.category IN ('kernel', 'copy', 'fill')) w
ASOF JOIN ({ops}) o ON w.launched_ns >= o.start_ns WHERE w.launched_ns < o.start_ns + o.duration_ns"""


def _at(context: RuleContext, sites: Iterable[int | None]) -> str:
    known = [site for site in sites if site is not None]
    condition = context.in_sites("site_id", known)
    return condition if len(known) == len(list(sites)) else f"({condition} OR site_id IS NULL)"
