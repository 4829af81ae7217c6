"""Python's garbage collector runs inside the step."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.analysis.rule import Draft, Rule, Setting
from explorer.analysis.rule_context import RuleContext
from explorer.analysis.rule_sql import union_ns
from explorer.model.finding import Saving


def check(context: RuleContext) -> Sequence[Draft]:
    if not context.holds(f"events > 0 AND category = 'gc' AND track_id = {context.main_track}"):
        return []
    passes = f"""SELECT e.event_id, e.start_ns, e.duration_ns, coalesce(k.site_id, e.site_id) AS site_id, e.step FROM events e
LEFT JOIN stacks k ON k.stack_id = e.stack_id AND k.depth = 0
WHERE {context.where()} AND e.category = 'gc' AND e.track_id = {context.main_track}"""
    evidence, row = context.evidence(
        "{passes} garbage-collector passes per step, in {steps} steps, take {gc_ns} per step.",
        f"""SELECT (SELECT count(*) FROM ({passes})) / {context.count} AS passes,
  (SELECT count(DISTINCT step) FROM ({passes})) AS steps, (union_ns / {context.count})::BIGINT AS gc_ns
FROM ({union_ns(passes)})""",
        passes,
    )
    gc_ns = row["gc_ns"]
    if context.count > 1 and row["steps"] < max(2, context.setting(RULE, "steps_share") * context.count):
        # One pass in a short capture says nothing about the passes per step of a long run.
        return []
    if gc_ns < context.setting(RULE, "gc_share") * context.scope.mean_ns:
        return []
    lines = context.costliest_lines(passes)
    code = context.code(next(iter(lines), None))
    if "collect(" in code:
        advice = f"Take `{code}` out of the step: reference counting frees tensors without it."
    else:
        advice = (
            "Call gc.collect() and gc.freeze() once after set-up, then gc.disable() with a gc.collect() every few hundred steps, or "
            "raise gc.set_threshold; make fewer Python objects per step."
        )
    return [
        Draft(
            title="Garbage collection inside the step",
            line_times_ns=lines,
            saving=Saving(low=gc_ns // 2, expected=gc_ns, high=gc_ns),
            evidence=[evidence],
            advice=advice,
            affected=passes,
            key="" if lines else "gc",
        )
    ]


RULE = Rule(
    name="gc_pauses",
    title="Garbage-collector pauses",
    specificity=3,
    needs=("gc",),
    check=check,
    settings=(
        Setting(
            "steps_share",
            0.25,
            "Smallest part of the steps in which a pass ran",
            "ours: a rarer pass is chance",
        ),
        Setting("gc_share", 0.02, "Smallest part of the step", "ours: the occasional young pass costs less"),
    ),
)
