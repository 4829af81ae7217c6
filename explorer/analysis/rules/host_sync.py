"""The host waits for the device in the middle of a step, and the device then waits for the host."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.analysis.rule import Draft, NotChecked, Rule, Setting
from explorer.analysis.rule_context import RuleContext
from explorer.model.finding import Saving

# Ops that make the host wait, innermost first: what the program wrote.
_CAUSES = {
    "aten::item": ".item()", "aten::_local_scalar_dense": ".item()", "aten::is_nonzero": "bool() of a tensor",
    "aten::nonzero": "nonzero or a boolean mask", "aten::to": ".to() or .cpu()", "aten::_to_copy": ".to() or .cpu()",
    "aten::copy_": "a copy", "aten::masked_select": "masked_select", "aten::unique_consecutive": "unique",
}  # fmt: skip


def check(context: RuleContext) -> Sequence[Draft] | NotChecked:
    if "device" not in context.has:
        return NotChecked(
            RULE.name, "the run holds no device events: on a CPU the host has nothing to wait for"
        )
    syncs = f"""SELECT e.event_id, e.start_ns, e.duration_ns, e.name, e.track_id, e.parent_id, coalesce(k.site_id, e.site_id) AS site_id
FROM events e JOIN tracks t ON t.rank = e.rank AND t.track_id = e.track_id
LEFT JOIN stacks k ON k.stack_id = e.stack_id AND k.depth = 0
WHERE {context.where()} AND t.kind = 'thread' AND (e.category = 'sync'
  OR (e.category = 'runtime' AND e.name IN ('cudaMemcpy', 'hipMemcpy', 'hipMemcpyWithStream')))"""
    launches = f"""SELECT e.start_ns AS at_ns FROM events e JOIN tracks t ON t.rank = e.rank AND t.track_id = e.track_id
WHERE {context.where()} AND t.kind <> 'thread' AND e.category IN ('kernel', 'copy', 'fill', 'collective')"""
    finished = f"""SELECT e.start_ns + e.duration_ns AS at_ns FROM events e JOIN tracks t ON t.rank = e.rank AND t.track_id = e.track_id
WHERE {context.where()} AND t.kind <> 'thread' AND e.category IN ('kernel', 'copy', 'fill', 'collective')"""
    # The cost of a wait is not its length, during which the device works, but the drained queue after it: from the end
    # of the last device work before the host goes on, to the first work started after.
    drained = f"""SELECT s.event_id, s.site_id, s.name, s.duration_ns AS wait_ns, last.at_ns AS start_ns,
  greatest(0, next.at_ns - last.at_ns) AS duration_ns
FROM ({syncs}) s
ASOF JOIN ({finished}) last ON s.start_ns + s.duration_ns >= last.at_ns
ASOF JOIN ({launches}) next ON s.start_ns + s.duration_ns <= next.at_ns
WHERE NOT EXISTS (SELECT 1 FROM events b JOIN tracks t ON t.rank = b.rank AND t.track_id = b.track_id
  WHERE b.rank = {context.scope.rank} AND t.kind <> 'thread' AND b.category IN ('kernel', 'copy', 'fill', 'collective')
    AND b.start_ns <= s.start_ns + s.duration_ns AND b.start_ns + b.duration_ns > s.start_ns + s.duration_ns)"""
    longest = context.setting(RULE, "longest_gap_ns")
    sites = context.rows(
        f"""SELECT site_id, sum(least(duration_ns, {longest:.0f})) AS gap_ns FROM ({drained})
        GROUP BY site_id ORDER BY gap_ns DESC, site_id"""
    )
    smallest = context.setting(RULE, "gap_share") * context.scope.total_ns
    drafts = []
    for site in (row["site_id"] for row in sites if row["gap_ns"] >= smallest):
        here = f"site_id IS NOT DISTINCT FROM {site if site is not None else 'NULL'}"
        evidence, row = context.evidence(
            "{syncs} waits per step take {wait_ns}; the device then has nothing to do for {gap_ns} per step.",
            f"""SELECT count(*) / {context.count} AS syncs, (sum(wait_ns) / {context.count})::BIGINT AS wait_ns,
  (sum(least(duration_ns, {longest:.0f})) / {context.count})::BIGINT AS gap_ns FROM ({drained}) WHERE {here}""",
            f"SELECT event_id FROM ({drained}) WHERE {here} ORDER BY duration_ns DESC, event_id",
        )
        gap_ns = min(row["gap_ns"], context.scope.mean_ns)
        cause = _cause(context, syncs, here)
        code = context.code(site)
        drafts.append(
            Draft(
                title=f"Waiting for the device: {cause} at {context.place(site)}",
                line_times_ns={site: row["wait_ns"]} if site is not None else {},
                saving=Saving(low=gap_ns // 3, expected=round(0.8 * gap_ns), high=gap_ns),
                evidence=[evidence],
                advice=_advice(cause, code),
                affected=f"SELECT start_ns, least(duration_ns, {longest:.0f})::BIGINT AS duration_ns FROM ({drained}) WHERE {here}",
                remaining_share=0.2,
                side="device",
                confidence="medium",
                key="" if site is not None else cause,
            )
        )
    return drafts


def _cause(context: RuleContext, syncs: str, here: str) -> str:
    rows = context.rows(
        f"""WITH RECURSIVE around AS (
          SELECT s.event_id, s.parent_id, s.duration_ns, 0 AS depth, s.name FROM ({syncs}) s WHERE {here}
          UNION ALL SELECT a.event_id, p.parent_id, a.duration_ns, a.depth + 1, p.name
          FROM around a JOIN events p ON p.rank = {context.scope.rank} AND p.event_id = a.parent_id
          WHERE a.depth < 12 AND p.category <> 'python'
        )
        SELECT name, sum(duration_ns) AS time_ns, min(depth) AS depth FROM around GROUP BY name ORDER BY time_ns DESC, depth DESC, name"""
    )
    for row in rows:
        if row["name"] in _CAUSES:
            return _CAUSES[row["name"]]
    waits = [row["name"] for row in rows if row["depth"] == 0]
    return str(waits[0]) if waits else "a wait"


def _advice(cause: str, code: str) -> str:
    line = f"`{code}`: " if code else ""
    if cause == ".item()":
        return (
            line
            + "keep the value on the device (`loss.detach()`), add it up there, and call .item() once every N steps or after the loop."
        )
    if cause == "nonzero or a boolean mask":
        return (
            line
            + "a result whose size depends on the data makes the host wait: use torch.where, a multiplication with the mask, or a fixed size with nonzero_static."
        )
    if cause == "bool() of a tensor":
        return line + "do not branch on a tensor in Python: use torch.where, or test every N steps."
    if cause in (".to() or .cpu()", "a copy"):
        return (
            line
            + "copy with non_blocking=True from or to pinned memory, and fetch results once every N steps."
        )
    return line + "leave explicit synchronisation out of the step; time with device events instead."


RULE = Rule(
    name="host_sync",
    title="Host synchronisation",
    specificity=3,
    needs=("events",),
    check=check,
    settings=(
        Setting(
            "gap_share",
            0.01,
            "Smallest part of the step the device idles after such waits",
            "ours: a wait alone is no loss while the device works",
        ),
        Setting(
            "longest_gap_ns",
            5_000_000,
            "Idle time counted at most per wait; the rest has another cause",
            "ours",
        ),
    ),
)
