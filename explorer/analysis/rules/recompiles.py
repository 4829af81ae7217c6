"""torch.compile compiles again and again."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.analysis.rule import Draft, Rule, Setting
from explorer.analysis.rule_context import RuleContext
from explorer.analysis.rule_sql import union_ns
from explorer.model.finding import Saving

_COMPILES = (
    "dynamo",
    "entire_frame_compile",
    "_compile.compile_inner (dynamo_timed)",
    "_compile.compile_inner",
)


def check(context: RuleContext) -> Sequence[Draft]:
    compiles = compilations(context)
    if not compiles:
        return []
    numbers = context.scope.all_numbers
    if numbers:
        # The first step may compile: that is what a first step is for.
        compiles += f" AND e.step > {numbers[0]}"
    steps = max(1, len(numbers) - 1)
    evidence, row = context.evidence(
        "{compiling_steps} of {later_steps} steps after the first compile, for {compile_ns} per step.",
        f"""SELECT (SELECT count(DISTINCT step) FROM ({compiles})) AS compiling_steps, {steps} AS later_steps,
  (union_ns / {steps})::BIGINT AS compile_ns FROM ({union_ns(compiles)})""",
        f"SELECT event_id FROM ({compiles}) ORDER BY duration_ns DESC, event_id",
    )
    if row["compiling_steps"] < context.setting(RULE, "steps"):
        return []
    compile_ns = min(row["compile_ns"], context.scope.mean_ns)
    lines = context.costliest_lines(compiles, steps=steps)
    code = context.code(next(iter(lines), None))
    reasons = context.rows(
        f"""SELECT json_extract_string(e.attributes, '$.recompile_reason') AS reason FROM events e
        WHERE e.event_id IN (SELECT event_id FROM ({compiles})) AND reason IS NOT NULL ORDER BY e.start_ns, e.event_id LIMIT 1"""
    )
    return [
        Draft(
            title="Compiled code is compiled again",
            line_times_ns=lines,
            saving=Saving(low=compile_ns // 2, expected=compile_ns, high=compile_ns),
            evidence=[evidence],
            advice=(f"`{code}` meets new shapes, types or Python values: " if code else "")
            + "pad or bucket the shapes, mark them with torch._dynamo.mark_dynamic or compile with dynamic=True, and keep changing "
            "Python numbers out of the compiled function. TORCH_LOGS=recompiles names the guard that failed."
            + (f" Here: {reasons[0]['reason'][:160]}." if reasons else ""),
            affected=f"SELECT start_ns, duration_ns FROM ({compiles})",
            key="" if lines else "compile",
        )
    ]


def compilations(context: RuleContext) -> str:
    """SQL for compilations in the complete steps and before the first of them (event_id, start_ns, duration_ns, step, site_id), open for conditions on e;
    empty where the run holds none."""
    if not context.holds(f"category = 'compile' OR {context.in_texts('name', _COMPILES)}"):
        return ""
    known = context.row(
        f"SELECT count(*) AS n FROM events e WHERE e.rank = {context.scope.rank} AND e.category = 'compile' AND e.duration_ns > 0"
    )
    # Our own capture records each compilation with the code it compiles; what it compiles of the recorder itself is not the
    # program's. Else the names of Dynamo's own timed regions serve (torch/_dynamo/utils.py), nested ones once by the union.
    which = (
        "e.category = 'compile' AND coalesce(e.attributes, '') NOT LIKE '%explorer/collectors/%'"
        if known["n"]
        else context.in_texts("e.name", _COMPILES)
    )
    scope = context.scope
    steps = ""
    if scope.all_numbers:
        # A recording begins in the middle of a step: what it compiles there is not in a complete one.
        numbers = ", ".join(map(str, scope.all_numbers))
        steps = f" AND (e.step IN ({numbers}) OR coalesce(e.step < {scope.all_numbers[0]}, e.start_ns < {scope.start_ns}))"
    return f"""SELECT e.event_id, e.start_ns, e.duration_ns, e.step, coalesce(k.site_id, e.site_id) AS site_id FROM events e
LEFT JOIN stacks k ON k.stack_id = e.stack_id AND k.depth = 0
WHERE e.rank = {scope.rank}{steps} AND ({which}) AND e.duration_ns >= {context.setting(RULE, "compile_ns"):.0f}"""


RULE = Rule(
    name="recompiles",
    title="Recompilation",
    specificity=3,
    needs=("ops",),
    check=check,
    settings=(
        Setting(
            "steps",
            2,
            "Fewest steps after the first that compile",
            "ours: one may be a legitimate second shape",
        ),
        Setting(
            "compile_ns",
            1_000_000,
            "Shortest region that counts as a compilation; cache look-ups are shorter",
            "ours",
        ),
    ),
)
