"""The same data goes to the host and back within a step."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.analysis.rule import Draft, Rule, Setting
from explorer.analysis.rule_context import RuleContext
from explorer.model.finding import Saving


def check(context: RuleContext) -> Sequence[Draft]:
    copies = f"""SELECT e.event_id, e.start_ns, e.duration_ns, e.size_bytes, e.step, e.site_id,
  CASE WHEN regexp_matches(e.name, '(?i)DtoH|Device ?to ?Host') THEN 'out' WHEN regexp_matches(e.name, '(?i)HtoD|Host ?to ?Device') THEN 'in' END AS way
FROM events e JOIN tracks t ON t.rank = e.rank AND t.track_id = e.track_id
WHERE {context.where()} AND t.kind <> 'thread' AND e.category = 'copy' AND e.size_bytes >= {context.setting(RULE, "size_bytes"):.0f}"""
    # Out and soon after in again, the same number of bytes.
    pairs = f"""WITH copies AS ({copies}), pairs AS (
  SELECT o.event_id AS out_id, i.event_id AS in_id, o.size_bytes, o.site_id AS out_site, i.site_id AS in_site,
    o.start_ns AS out_start_ns, o.duration_ns AS out_ns, i.start_ns AS in_start_ns, i.duration_ns AS in_ns
  FROM (SELECT * FROM copies WHERE way = 'out') o ASOF JOIN (SELECT * FROM copies WHERE way = 'in') i
    ON o.size_bytes = i.size_bytes AND o.step IS NOT DISTINCT FROM i.step AND o.start_ns < i.start_ns)"""
    both = f"""{pairs} SELECT out_id AS event_id, out_start_ns AS start_ns, out_ns AS duration_ns FROM pairs
UNION SELECT in_id, in_start_ns, in_ns FROM pairs"""
    evidence, row = context.evidence(
        "{pairs} times per step data goes to the host and the same number of bytes comes back, {moved_bytes} in all; the copies take {time_ns} per step.",
        f"""{pairs} SELECT count(*) / {context.count} AS pairs, coalesce(sum(size_bytes), 0) * 2 / {context.count} AS moved_bytes,
  (coalesce(sum(out_ns + in_ns), 0) / {context.count})::BIGINT AS time_ns FROM pairs""",
        f"{pairs} SELECT out_id AS event_id FROM pairs ORDER BY out_ns DESC, out_id",
    )
    time_ns = row["time_ns"]
    if row["pairs"] < 1 or time_ns < context.setting(RULE, "copy_share") * context.scope.mean_ns:
        return []
    lines = context.rows(
        f"""{pairs} SELECT site_id, (sum(time_ns) / {context.count})::BIGINT AS time_ns FROM (
          SELECT out_site AS site_id, out_ns AS time_ns FROM pairs UNION ALL SELECT in_site, in_ns FROM pairs)
        WHERE site_id IS NOT NULL GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 4"""
    )
    return [
        Draft(
            title="Data goes to the host and back",
            line_times_ns={item["site_id"]: item["time_ns"] for item in lines},
            saving=Saving(low=time_ns // 2, expected=round(0.9 * time_ns), high=2 * time_ns),
            evidence=[evidence],
            advice="Do the work between the two copies on the device (torch instead of numpy), or keep the tensor there.",
            affected=both,
            remaining_share=0.1,
            side="device",
            confidence="medium",
            key="ping_pong",
        )
    ]


RULE = Rule(
    name="transfer_ping_pong",
    title="Ping-pong transfers",
    specificity=3,
    needs=("device",),
    check=check,
    settings=(
        Setting("size_bytes", 65_536, "Smallest copy that counts", "ours: smaller ones meet by chance"),
        Setting("copy_share", 0.01, "Smallest part of the step", "ours: below 1 % nothing is gained"),
    ),
)
