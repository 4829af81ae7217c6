"""A compiled function runs in pieces, with Python between them."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.analysis.code_loop import CodeLines
from explorer.analysis.rule import Draft, Rule, Setting
from explorer.analysis.rule_context import RuleContext
from explorer.model.finding import Saving


def check(context: RuleContext) -> Sequence[Draft]:
    if not context.holds("events > 0 AND name LIKE 'Torch-Compiled Region: %'"):
        return []
    # Dynamo names each compiled region "Torch-Compiled Region: <frame>/<recompilation>". The code after a graph break is a
    # frame of its own that the broken frame calls: a region of another frame inside a region.
    regions = f"""WITH regions AS (
  SELECT e.*, coalesce(k.site_id, e.site_id) AS line_id, regexp_extract(e.name, 'Region: (\\d+)', 1) AS frame,
    max(e.start_ns + e.duration_ns) OVER (PARTITION BY e.track_id ORDER BY e.start_ns, e.duration_ns DESC
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS reached_ns
  FROM events e LEFT JOIN stacks k ON k.stack_id = e.stack_id AND k.depth = 0
  WHERE {context.where()} AND e.name LIKE 'Torch-Compiled Region: %'),
calls AS (SELECT * FROM regions WHERE reached_ns IS NULL OR reached_ns <= start_ns),
breaks AS (
  SELECT r.event_id, r.line_id, c.event_id AS call_id FROM (SELECT * FROM regions WHERE reached_ns > start_ns) r
  ASOF JOIN calls c ON r.track_id = c.track_id AND r.start_ns > c.start_ns WHERE r.frame <> c.frame),
broken AS (SELECT * FROM calls WHERE event_id IN (SELECT call_id FROM breaks)),
computing AS (
  SELECT o.start_ns, o.duration_ns FROM (
    SELECT *, max(start_ns + duration_ns) OVER (PARTITION BY track_id ORDER BY start_ns, duration_ns DESC
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS reached_ns
    FROM events e WHERE {context.where()} AND e.category = 'op' AND e.name LIKE 'aten::%') o
  ASOF JOIN broken c ON o.track_id = c.track_id AND o.start_ns >= c.start_ns
  WHERE o.start_ns < c.start_ns + c.duration_ns AND (o.reached_ns IS NULL OR o.reached_ns <= o.start_ns))"""
    evidence, row = context.evidence(
        "Graph breaks leave {breaks} further pieces per step in {calls} calls of compiled code, which take {call_ns} per step, {op_ns} of it in ops.",
        f"""{regions} SELECT (SELECT count(*) FROM breaks) / {context.count} AS breaks, count(*) / {context.count} AS calls,
  (coalesce(sum(duration_ns), 0) / {context.count})::BIGINT AS call_ns,
  (SELECT coalesce(sum(duration_ns), 0) / {context.count} FROM computing)::BIGINT AS op_ns FROM broken""",
        f"{regions} SELECT event_id FROM breaks",
    )
    # Unbroken, a call still looks up its code and enters one region.
    saved_ns = round(row["call_ns"] - row["op_ns"] - row["calls"] * context.setting(RULE, "entry_ns"))
    if row["breaks"] < 1 or saved_ns < context.setting(RULE, "break_share") * context.scope.mean_ns:
        return []
    # The line that called the compiled code comes last: the break is inside it.
    lines = context.rows(
        f"""{regions} SELECT line_id AS site_id, count(*) AS breaks FROM breaks WHERE line_id IS NOT NULL
        GROUP BY 1 ORDER BY line_id IN (SELECT line_id FROM calls), breaks DESC, 1 LIMIT 3"""
    )
    times = {line.site_id: round(line.host_ns) for line in CodeLines(context).lines}
    return [
        Draft(
            title="Graph breaks in compiled code",
            line_times_ns={item["site_id"]: times.get(item["site_id"], 0) for item in lines},
            saving=Saving(low=saved_ns // 2, expected=saved_ns, high=row["call_ns"]),
            evidence=[evidence],
            advice=_advice(context, [item["site_id"] for item in lines]),
            affected=f"{regions} SELECT start_ns, duration_ns FROM broken",
            remaining_share=1 - saved_ns / row["call_ns"],
            confidence="medium",
            caveats=["What the compiler could fuse across the break is not counted."],
            key="" if lines else "breaks",
        )
    ]


def _advice(context: RuleContext, sites: list[int]) -> str:
    """What breaks the graph at each line, as Dynamo says it; where the compilation was not recorded, how to find out."""
    general = (
        "take prints, .item(), data-dependent branches and unsupported calls out of the compiled function"
    )
    rows = context.rows(
        f"""SELECT e.site_id, any_value(json_extract_string(e.attributes, '$.reason')) AS reason FROM events e
        WHERE e.rank = {context.scope.rank} AND e.category = 'compile' AND e.name = 'graph break' AND {context.in_sites("e.site_id", sites)}
        GROUP BY 1"""
    )
    reasons = {row["site_id"]: row["reason"] for row in rows if row["reason"]}
    said = [
        f"`{context.code(site)}` ({context.place(site)}): {_gist(reasons[site])}"
        for site in sites
        if site in reasons
    ]
    if said:
        return f"The graph breaks at {'; '.join(said[:2])}. Move that out of the compiled function, or replace it; then compile with fullgraph=True."
    return f"Compile with fullgraph=True to see where the graph breaks, or run with TORCH_LOGS=graph_breaks; {general}."


def _gist(reason: str) -> str:
    """The explanation in Dynamo's text, which names the call; else its first line."""
    lines = [line.strip() for line in reason.splitlines() if line.strip()]
    explained = next((line.split(":", 1)[1] for line in lines if line.startswith("Explanation:")), lines[0])
    return " ".join(explained.split())[:160].rstrip(". ")


RULE = Rule(
    name="graph_breaks",
    title="Graph breaks",
    specificity=3,
    needs=("ops",),
    check=check,
    settings=(
        Setting("entry_ns", 60_000, "Cost of entering compiled code once", "measured: torch 2.13 on CPU"),
        Setting(
            "break_share",
            0.01,
            "Smallest part of the step that the breaks cost",
            "ours: below 1 % nothing is gained",
        ),
    ),
)
