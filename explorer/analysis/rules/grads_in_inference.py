"""Inference records a graph for a backward pass that never comes."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.analysis.op_names import CONVOLUTION, MATMUL, POINTWISE, REDUCTION, SOFTMAX, VIEW, listed
from explorer.analysis.rule import Draft, NotChecked, Rule, Setting
from explorer.analysis.rule_context import RuleContext
from explorer.model.finding import Saving

_NODES = listed(
    (MATMUL - {"matmul", "linear", "einsum"}) | CONVOLUTION | POINTWISE | REDUCTION | SOFTMAX | VIEW
)


def check(context: RuleContext) -> Sequence[Draft] | NotChecked:
    if not context.captured:
        return NotChecked(RULE.name, "only our own capture says which ops autograd recorded")
    backward = context.row(
        f"SELECT count(*) AS n FROM events e WHERE e.rank = {context.scope.rank} AND e.phase IN ('backward', 'optimizer')"
    )
    if backward["n"]:
        return []
    compiled = context.row(
        f"SELECT count(*) AS n FROM events e WHERE {context.where()} AND e.name LIKE 'Torch-Compiled Region: %'"
    )
    if compiled["n"]:
        return NotChecked(RULE.name, "compiled regions do not say which of their ops autograd recorded")
    recorded = f"""SELECT o.event_id, o.start_ns, o.duration_ns, o.executing_site_id AS site_id FROM top_ops o
WHERE {context.where("o")} AND o.phase = 'forward'"""
    evidence, row = context.evidence(
        "No backward pass, but {recorded} ops per step, {time_ns} in all, ran with gradients on and left {nodes} graph nodes.",
        f"""SELECT count(*) / {context.count} AS recorded, (coalesce(sum(duration_ns), 0) / {context.count})::BIGINT AS time_ns,
  (SELECT count(*) / {context.count} FROM events e WHERE {context.where()} AND e.category = 'op' AND e.phase = 'forward'
    AND {context.in_texts("e.name", _NODES)}) AS nodes FROM ({recorded})""",
        recorded,
    )
    if row["nodes"] < context.setting(RULE, "nodes"):
        return []
    expected = round(min(row["nodes"] * context.setting(RULE, "node_ns"), 0.5 * row["time_ns"]))
    rows = context.rows(
        f"""SELECT site_id, (sum(duration_ns) / {context.count})::BIGINT AS time_ns FROM ({recorded}) WHERE site_id IS NOT NULL
        GROUP BY 1 ORDER BY time_ns DESC, site_id LIMIT 3"""
    )
    lines = {item["site_id"]: item["time_ns"] for item in rows}
    return [
        Draft(
            title="Gradients are recorded in inference",
            line_times_ns=lines,
            saving=Saving(low=expected // 2, expected=expected, high=2 * expected),
            evidence=[evidence],
            advice=(f"`{context.code(next(iter(lines), None))}`: " if lines else "")
            + "run inference under torch.inference_mode() (or torch.no_grad()): no graph is recorded and activations are freed at once.",
            affected=recorded,
            remaining_share=max(0.0, 1 - expected / max(1, row["time_ns"])),
            caveats=["The memory that the graph keeps alive is not counted."],
            key="" if lines else "inference",
        )
    ]


RULE = Rule(
    name="grads_in_inference",
    title="Gradients in inference",
    specificity=3,
    needs=("ops",),
    check=check,
    settings=(
        Setting("nodes", 4, "Fewest graph nodes per step", "ours"),
        Setting(
            "node_ns",
            1_600,
            "Cost of recording one node and freeing it",
            "measured: torch 2.13 on CPU, small ops with and without inference_mode",
        ),
    ),
)
