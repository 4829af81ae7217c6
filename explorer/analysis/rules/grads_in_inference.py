"""Inference records a graph for a backward pass that never comes."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.analysis.op_names import CONVOLUTION, MATMUL, POINTWISE, REDUCTION, SOFTMAX, VIEW, listed
from explorer.analysis.rule import Draft, NotChecked, Rule, Setting
from explorer.analysis.rule_context import RuleContext
from explorer.model.finding import Saving

_OTHERS = frozenset(
    ["layer_norm", "batch_norm", "group_norm", "rms_norm", "embedding", "cat", "stack", "index", "gather", "index_select", "clone",
     "scaled_dot_product_attention", "max_pool2d", "avg_pool2d", "adaptive_avg_pool2d"]
)  # fmt: skip
_COMPUTING = listed(
    (MATMUL - {"matmul", "linear", "einsum"}) | CONVOLUTION | POINTWISE | REDUCTION | SOFTMAX | _OTHERS
)
_VIEWS = listed(VIEW - {"detach", "alias"})
"""Ops that leave a node in the graph; those made of others only (linear, matmul) do not."""


_LEAST_LINE_SHARE = 0.05
"""Lines with less of the recorded time are no place to change."""


def check(context: RuleContext) -> Sequence[Draft] | NotChecked:
    if not context.captured:
        return NotChecked(RULE.name, "only our own capture says which ops autograd recorded")
    if context.holds("phase IN ('backward', 'optimizer')"):
        return []
    if context.holds("events > 0 AND name LIKE 'Torch-Compiled Region: %'"):
        return NotChecked(RULE.name, "compiled regions do not say which of their ops autograd recorded")
    recorded = f"""SELECT o.event_id, o.start_ns, o.duration_ns, o.executing_site_id AS site_id FROM top_ops o
WHERE {context.where("o")} AND o.phase = 'forward'"""
    # An op of the graph inside another (as_strided in slice) runs below autograd and leaves no node of its own.
    nodes = f"""SELECT e.name FROM events e LEFT JOIN events p ON p.rank = e.rank AND p.event_id = e.parent_id
WHERE {context.where()} AND e.category = 'op' AND e.phase = 'forward' AND {context.in_texts("e.name", [*_COMPUTING, *_VIEWS])}
  AND NOT coalesce({context.in_texts("p.name", [*_COMPUTING, *_VIEWS])}, FALSE)"""
    evidence, row = context.evidence(
        "No backward pass, but {recorded} outermost ops per step, {time_ns} in all, ran with gradients on and left {nodes} graph nodes, {views} of them of views.",
        f"""SELECT count(*) / {context.count} AS recorded, (coalesce(sum(duration_ns), 0) / {context.count})::BIGINT AS time_ns,
  (SELECT count(*) / {context.count} FROM ({nodes})) AS nodes,
  (SELECT count(*) / {context.count} FROM ({nodes}) WHERE {context.in_texts("name", _VIEWS)}) AS views FROM ({recorded})""",
        recorded,
    )
    if row["nodes"] < context.setting(RULE, "nodes") or not row["time_ns"]:
        return []
    expected = _saving_ns(context, row, recorded)
    lines = _calls_of_the_step(context)
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


def _calls_of_the_step(context: RuleContext) -> dict[int, int]:
    """Time of the recorded ops by the outermost line that a step executes above each: the call to put under inference_mode()."""
    found = context.costliest_lines(
        f"""WITH visited AS (
          SELECT site_id FROM line_steps l WHERE {context.where("l")} AND l.track_id = {context.main_track}
          GROUP BY site_id HAVING sum(visits) >= 0.5 * {context.count}),
        calls AS (SELECT k.stack_id, arg_max(k.site_id, k.depth) AS site_id FROM stacks k
          JOIN sites s USING (site_id) SEMI JOIN visited v ON v.site_id = k.site_id WHERE s.is_user GROUP BY 1)
        SELECT coalesce(c.site_id, o.executing_site_id) AS site_id, o.duration_ns
        FROM top_ops o JOIN events e ON e.rank = o.rank AND e.event_id = o.event_id LEFT JOIN calls c ON c.stack_id = e.stack_id
        WHERE {context.where("o")} AND o.phase = 'forward'"""
    )
    least_ns = _LEAST_LINE_SHARE * sum(found.values())
    return {site: time_ns for site, time_ns in found.items() if time_ns >= least_ns}


def _saving_ns(context: RuleContext, row: dict[str, float], recorded: str) -> int:
    """Recorded time that goes with the graph: the share that it has in a typical step without the cost of recording."""
    typical = context.row(
        f"""SELECT median(ops_ns) AS ops_ns, (SELECT count(*) / {context.count} FROM events e
          WHERE {context.where()} AND e.category = 'op' AND e.phase = 'forward') AS ops
        FROM (SELECT sum(o.duration_ns) AS ops_ns FROM top_ops o SEMI JOIN ({recorded}) r ON r.event_id = o.event_id
          WHERE {context.where("o")} GROUP BY o.step)"""
    )
    cost_ns = context.engine.reader.manifests[context.scope.rank].cost.get("op_ns") or 0.0
    unrecorded_ns = max(0.1 * typical["ops_ns"], typical["ops_ns"] - typical["ops"] * cost_ns)
    graph_ns = (row["nodes"] - row["views"]) * context.setting(RULE, "node_ns") + row[
        "views"
    ] * context.setting(RULE, "view_node_ns")
    return round(min(graph_ns / unrecorded_ns, context.setting(RULE, "most_share")) * row["time_ns"])


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
            1_300,
            "Cost of recording one node and freeing it",
            "measured: 0.7 to 1.6 µs per op alone, about a quarter more among others, torch 2.13 on CPU",
        ),
        Setting(
            "view_node_ns",
            700,
            "The same of a view, which saves no tensor",
            "measured: 0.5 to 0.6 µs per op alone, about a quarter more among others, torch 2.13 on CPU",
        ),
        Setting(
            "most_share",
            0.6,
            "Largest part of the ops' time that is the graph",
            "measured: up to 0.5 for the smallest ops",
        ),
    ),
)
