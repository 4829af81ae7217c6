"""Computing in double precision."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.analysis.op_names import CONVOLUTION, MATMUL, POINTWISE, REDUCTION, listed
from explorer.analysis.rule import Draft, NotChecked, Rule, Setting
from explorer.analysis.rule_context import RuleContext
from explorer.analysis.shape_text import listed as listed_text
from explorer.analysis.source_mentions import mentions
from explorer.model.finding import Saving

_COMPUTE = listed(MATMUL | CONVOLUTION | POINTWISE | REDUCTION)


_MENTIONED = 3
"""Most places named in an advice"""


def check(context: RuleContext) -> Sequence[Draft] | NotChecked:
    pairs = _double_ops(context)
    if not pairs:
        return []
    chosen = ", ".join(f"('{name}', {site})" for name, site in sorted(pairs))
    ops = f"""SELECT e.event_id, e.start_ns, e.duration_ns, e.self_ns, e.name, coalesce(e.site_id, 0) AS site_id FROM events e
WHERE {context.where()} AND e.category = 'op' AND (e.name, coalesce(e.site_id, 0)) IN ({chosen})"""
    evidence, row = context.evidence(
        "{calls} ops per step compute on float64 tensors and take {time_ns} per step.",
        f"SELECT count(*) / {context.count} AS calls, (sum(self_ns) / {context.count})::BIGINT AS time_ns FROM ({ops})",
        f"SELECT event_id FROM ({ops}) ORDER BY duration_ns DESC, event_id",
    )
    time_ns = row["time_ns"] or 0
    if time_ns < context.setting(RULE, "double_share") * context.scope.mean_ns:
        return []
    lines = context.costliest_lines(
        f"SELECT site_id, self_ns AS duration_ns FROM ({ops}) WHERE site_id <> 0", most=5
    )
    expected = round(context.setting(RULE, "saved_share") * time_ns)
    code = context.code(next(iter(lines), None))
    return [
        Draft(
            title="Double precision (float64)",
            line_times_ns=lines,
            saving=Saving(low=round(0.7 * expected), expected=expected, high=round(1.4 * expected)),
            evidence=[evidence],
            advice=(f"`{code}` computes in float64. " if code else "") + _advice(context),
            affected=ops,
            remaining_share=1 - expected / time_ns,
            caveats=[
                "On an accelerator float64 is often 32 to 64 times slower than float32, so the saving can be larger."
            ]
            if "device" in context.has
            else [],
            key="float64",
        )
    ]


def _advice(context: RuleContext) -> str:
    asked = mentions(context, r"\bfloat64\b|\.double\(\)|torch\.double\b|\bDoubleTensor\b")
    if asked:
        places = ", ".join(f"`{code}` ({file}:{line})" for file, line, code in asked[:_MENTIONED])
        return f"Use torch.float32 where it is asked for: {places}."
    return (
        "numpy arrays are float64 by default and promote what they meet: make tensors with dtype=torch.float32 "
        "(torch.from_numpy(a).float(), torch.tensor(a, dtype=torch.float32)) and keep .double() out of the model."
    )


def _double_ops(context: RuleContext) -> set[tuple[str, int]]:
    """(name, responsible site) of ops seen with a float64 tensor; numbers wrapped as 0-dimensional tensors do not count."""
    rows = context.rows(
        f"""SELECT DISTINCT e.name, coalesce(e.site_id, 0) AS site_id, e.dtypes, e.shapes FROM events e
        WHERE e.rank = {context.scope.rank} AND e.category = 'op' AND e.dtypes LIKE '%"double"%'
          AND {context.in_texts("e.name", _COMPUTE)}"""
    )
    found = set()
    for row in rows:
        dtypes, shapes = listed_text(row["dtypes"]), listed_text(row["shapes"])
        if any(dtype == "double" and shape for dtype, shape in zip(dtypes, shapes)):
            found.add((row["name"], row["site_id"]))
    return found


RULE = Rule(
    name="float64",
    title="Accidental float64",
    specificity=3,
    needs=("dtypes",),
    check=check,
    settings=(
        Setting(
            "double_share",
            0.03,
            "Smallest part of the step in float64 ops",
            "ours: the 'medium' limit of severities",
        ),
        Setting(
            "saved_share",
            0.5,
            "Part of their time that float32 saves",
            "half the bytes and twice the vector lanes on a CPU; more on accelerators",
        ),
    ),
)
