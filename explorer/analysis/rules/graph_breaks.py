"""A compiled function runs in pieces, with Python between them."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.analysis.rule import Draft, Rule, Setting
from explorer.analysis.rule_context import RuleContext
from explorer.model.finding import Saving


def check(context: RuleContext) -> Sequence[Draft]:
    # Dynamo names each compiled region "Torch-Compiled Region: <frame>/<recompilation>". The code after a graph break is a
    # frame of its own that the broken frame calls: a region of another frame inside a region.
    longest = context.setting(RULE, "break_ns")
    breaks = f"""WITH regions AS (
  SELECT e.*, coalesce(k.site_id, e.site_id) AS line_id, regexp_extract(e.name, 'Region: (\\d+)', 1) AS frame FROM events e
  LEFT JOIN stacks k ON k.stack_id = e.stack_id AND k.depth = 0
  WHERE {context.where()} AND e.name LIKE 'Torch-Compiled Region: %'),
inner_regions AS (
  SELECT i.* FROM regions i ASOF JOIN regions o ON i.rank = o.rank AND i.track_id = o.track_id AND i.start_ns > o.start_ns
  WHERE i.start_ns < o.start_ns + o.duration_ns AND i.frame <> o.frame)
SELECT i.event_id, w.start_ns + w.duration_ns AS start_ns, i.start_ns - w.start_ns - w.duration_ns AS duration_ns, i.line_id AS site_id
FROM inner_regions i ASOF JOIN (SELECT * FROM events e WHERE {context.where()} AND e.category = 'op' AND e.name LIKE 'aten::%') w
  ON i.track_id = w.track_id AND i.start_ns >= w.start_ns + w.duration_ns
WHERE i.start_ns - w.start_ns - w.duration_ns <= {longest:.0f}"""
    callers = f"""SELECT coalesce(k.site_id, e.site_id) FROM events e LEFT JOIN stacks k ON k.stack_id = e.stack_id AND k.depth = 0
LEFT JOIN events p ON p.rank = e.rank AND p.event_id = e.parent_id
WHERE {context.where()} AND e.name LIKE 'Torch-Compiled Region: %' AND p.event_id IS NULL"""
    evidence, row = context.evidence(
        "{breaks} times per step compiled code stops and goes on in another compiled frame; {between_ns} per step pass between.",
        f"SELECT count(*) / {context.count} AS breaks, (coalesce(sum(duration_ns), 0) / {context.count})::BIGINT AS between_ns FROM ({breaks})",
        breaks,
    )
    between_ns = row["between_ns"]
    if row["breaks"] < 1 or between_ns < context.setting(RULE, "break_share") * context.scope.mean_ns:
        return []
    # The line that called the compiled code comes last: the break is inside it.
    lines = context.rows(
        f"""SELECT site_id, (sum(duration_ns) / {context.count})::BIGINT AS time_ns FROM ({breaks}) WHERE site_id IS NOT NULL
        GROUP BY 1 ORDER BY site_id IN ({callers}), time_ns DESC, site_id LIMIT 3"""
    )
    return [
        Draft(
            title="Graph breaks in compiled code",
            line_times_ns={item["site_id"]: item["time_ns"] for item in lines},
            saving=Saving(low=between_ns // 4, expected=round(0.7 * between_ns), high=2 * between_ns),
            evidence=[evidence],
            advice="Compile with fullgraph=True to see where the graph breaks, or run with TORCH_LOGS=graph_breaks; take prints, .item(), "
            "data-dependent branches and unsupported calls out of the compiled function.",
            affected=f"SELECT start_ns, duration_ns FROM ({breaks})",
            remaining_share=0.3,
            confidence="medium",
            caveats=["What the compiler could fuse across the break is not counted."],
            key="" if lines else "breaks",
        )
    ]


RULE = Rule(
    name="graph_breaks",
    title="Graph breaks",
    specificity=3,
    needs=("ops",),
    check=check,
    settings=(
        Setting("break_ns", 5_000_000, "Longest pause between two frames that is taken as one break", "ours"),
        Setting(
            "break_share",
            0.01,
            "Smallest part of the step between the frames",
            "ours: below 1 % nothing is gained",
        ),
    ),
)
