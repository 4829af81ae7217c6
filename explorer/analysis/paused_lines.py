"""Time of hot code after the recorder let go of it: known only as its caller's, though the hot code was what ran on."""

from __future__ import annotations

from explorer.analysis.rule_context import RuleContext


def pauses(context: RuleContext) -> str:
    """SQL for what the main thread did while line recording was paused: (start_ns, end_ns, site_id, caller_site_id).

    Known until recording is taken up is the hot function or a caller, by its `def` line; `site_id` is the line that was seen
    last, in hot code.
    """
    rank, track = context.scope.rank, context.main_track
    return context.engine.keep(
        f"""SELECT h.start_ns, h.start_ns + h.duration_ns AS end_ns, h.before_site_id AS site_id, h.site_id AS caller_site_id
FROM (SELECT *, lag(site_id) OVER w AS before_site_id, lag(stack_id) OVER w AS before_stack_id,
    lag(start_ns + duration_ns) OVER w AS before_end_ns
  FROM host_states WHERE rank = {rank} AND track_id = {track} WINDOW w AS (ORDER BY start_ns)) h
JOIN sites g ON g.site_id = h.site_id AND regexp_matches(g.code, '^(async )?def ')
JOIN sites f ON f.site_id = h.before_site_id AND NOT regexp_matches(f.code, '^(async )?def ')
-- Entering a function shows its first line too; there the function is not on the stack before.
WHERE h.before_end_ns = h.start_ns AND EXISTS (SELECT 1 FROM stacks k JOIN sites c ON c.site_id = k.site_id
  WHERE k.stack_id = h.before_stack_id AND (c.file, c.function) = (g.file, g.function))"""
    )


def paused_after(context: RuleContext) -> str:
    """SQL for pauses inside the steps in scope, as (start_ns, duration_ns, step, site_id, caller_site_id).

    Up to the next op nothing says that the hot code ended: that stretch is taken as its own.
    """
    return context.engine.keep(
        f"""SELECT p.start_ns, (least(p.end_ns, coalesce(o.start_ns, p.end_ns)) - p.start_ns)::BIGINT AS duration_ns, p.step, p.site_id,
  p.caller_site_id
FROM (
  SELECT h.start_ns, least(h.end_ns, s.start_ns + s.duration_ns) AS end_ns, s.step, h.site_id, h.caller_site_id
  FROM ({pauses(context)}) h ASOF JOIN (SELECT * FROM steps s WHERE {context.where("s")}) s ON h.start_ns >= s.start_ns
  WHERE h.start_ns < s.start_ns + s.duration_ns) p
ASOF LEFT JOIN (SELECT o.start_ns FROM top_ops o WHERE {context.where("o")} AND o.track_id = {context.main_track}) o
ON o.start_ns >= p.start_ns"""
    )
