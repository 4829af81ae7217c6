"""Attention written as matmul, softmax, matmul, or falling to the math path."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.analysis.op_cost import device_time
from explorer.analysis.op_sequence import SequenceOp, typical_step
from explorer.analysis.rule import Draft, Rule, Setting
from explorer.analysis.rule_context import RuleContext
from explorer.model.finding import Saving

_BETWEEN = ("pointwise", "reduction", "view", "softmax")


def check(context: RuleContext) -> Sequence[Draft]:
    return [*_by_hand(context), *_math_path(context)]


def _patterns(context: RuleContext) -> list[list[SequenceOp]]:
    sequence = typical_step(context)
    reach = round(context.setting(RULE, "reach"))
    found = []
    for position, op in enumerate(sequence):
        if op.family != "softmax":
            continue
        first = _find(sequence, range(position - 1, max(-1, position - reach), -1))
        last = _find(sequence, range(position + 1, min(len(sequence), position + reach)))
        if first is not None and last is not None:
            found.append([o for o in sequence[first : last + 1] if o.family != "view"])
    return found


def _find(sequence: list[SequenceOp], positions: range) -> int | None:
    for position in positions:
        op = sequence[position]
        if op.family == "matmul":
            # A linear layer before the softmax is a classifier, not attention scores.
            return None if op.name == "aten::linear" else position
        if op.family not in _BETWEEN and op.name not in (
            "aten::to",
            "aten::contiguous",
            "aten::triu",
            "aten::tril",
        ):
            return None
    return None


def _by_hand(context: RuleContext) -> list[Draft]:
    by_place: dict[tuple[str, str], list[SequenceOp]] = {}
    for pattern in _patterns(context):
        by_place.setdefault(pattern[0].place or ("", ""), []).extend(pattern)
    drafts = []
    for (file, function), ops in by_place.items():
        sites = sorted({op.site_id for op in ops if op.site_id})
        if sites:
            names = sorted({op.name for op in ops})
            chosen = f"""SELECT o.event_id, o.start_ns, o.duration_ns, o.executing_site_id AS site_id FROM top_ops o
WHERE {context.where("o")} AND o.phase IS DISTINCT FROM 'backward' AND {context.in_texts("o.name", names)} AND {context.in_sites("o.executing_site_id", sites)}
UNION ALL SELECT o.event_id, o.start_ns, o.duration_ns, o.site_id FROM top_ops o
WHERE {context.where("o")} AND o.phase = 'backward' AND {context.in_sites("o.site_id", sites)} AND o.name NOT LIKE '%AccumulateGrad'"""
            steps = context.count
        else:
            # Without lines only the typical step's own ops can be named.
            ids = ", ".join(str(op.event_id) for op in ops)
            chosen = f"""SELECT o.event_id, o.start_ns, o.duration_ns, o.site_id FROM top_ops o WHERE o.rank = {context.scope.rank} AND o.event_id IN ({ids})"""
            steps = 1
        if draft := _draft(context, chosen, steps, f"{function} ({file})" if function else "the model"):
            drafts.append(draft)
    return drafts


def _draft(context: RuleContext, chosen: str, steps: int, place: str) -> Draft | None:
    on_device = "kernels" in context.has
    work = device_time(context, chosen) if on_device else chosen
    where = ", backward ops included" if context.holds("phase = 'backward'") else ""
    evidence, row = context.evidence(
        "{ops} ops per step of matmul, softmax, matmul take {time_ns} per step"
        + (" on the device." if on_device else f"{where}."),
        f"SELECT count(*) / {steps} AS ops, (coalesce(sum(duration_ns), 0) / {steps})::BIGINT AS time_ns FROM ({work})",
        work,
    )
    time_ns = row["time_ns"]
    if time_ns < context.setting(RULE, "attention_share") * context.scope.mean_ns:
        return None
    rows = context.rows(
        f"""SELECT w.site_id, (sum(w.duration_ns) / {steps})::BIGINT AS time_ns, max((s.code LIKE '%softmax%')::INT) AS is_softmax FROM ({work}) w
        JOIN sites s USING (site_id) GROUP BY 1 ORDER BY is_softmax DESC, time_ns DESC, 1 LIMIT 4"""
    )
    times = {item["site_id"]: item["time_ns"] for item in rows}
    expected = round(context.setting(RULE, "saved_share") * time_ns)
    code = context.code(next(iter(times), None))
    return Draft(
        title=f"Attention by hand in {place}",
        line_times_ns=times,
        saving=Saving(low=expected // 2, expected=expected, high=round(1.5 * expected)),
        evidence=[evidence],
        advice=(f"`{code}`: " if code else "")
        + "use torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=..., is_causal=...), which never writes the whole score matrix to memory.",
        affected=f"SELECT event_id, start_ns, duration_ns FROM ({work})",
        remaining_share=1 - context.setting(RULE, "saved_share"),
        side="device" if on_device else "host",
        confidence="medium",
        key=place,
    )


def _math_path(context: RuleContext) -> list[Draft]:
    """scaled_dot_product_attention that ran its unfused fallback on a device."""
    if "kernels" not in context.has:
        return []
    chosen = f"""SELECT e.event_id, e.start_ns, e.duration_ns, e.site_id FROM events e
WHERE {context.where()} AND e.category = 'op' AND e.name = 'aten::_scaled_dot_product_attention_math'"""
    work = device_time(context, chosen)
    evidence, row = context.evidence(
        "{calls} calls per step took the math path of scaled_dot_product_attention, {time_ns} per step on the device.",
        f"""SELECT (SELECT count(*) FROM ({chosen})) / {context.count} AS calls, (coalesce(sum(duration_ns), 0) / {context.count})::BIGINT AS time_ns FROM ({work})""",
        chosen,
    )
    time_ns = row["time_ns"]
    if not row["calls"] or time_ns < context.setting(RULE, "attention_share") * context.scope.mean_ns:
        return []
    rows = context.rows(
        f"SELECT site_id, (sum(duration_ns) / {context.count})::BIGINT AS time_ns FROM ({work}) WHERE site_id IS NOT NULL GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 3"
    )
    expected = round(context.setting(RULE, "saved_share") * time_ns)
    return [
        Draft(
            title="Attention falls to the math path",
            line_times_ns={item["site_id"]: item["time_ns"] for item in rows},
            saving=Saving(low=expected // 2, expected=expected, high=round(1.5 * expected)),
            evidence=[evidence],
            advice="Use half precision, a head size the fused kernels take (a multiple of 8, at most 256), and a mask they know (is_causal instead of a dense mask); torch.nn.attention.sdpa_kernel with one backend says why it is refused.",
            affected=f"SELECT event_id, start_ns, duration_ns FROM ({work})",
            remaining_share=1 - context.setting(RULE, "saved_share"),
            side="device",
            confidence="medium",
            key="math",
        )
    ]


RULE = Rule(
    name="unfused_attention",
    title="Unfused attention",
    specificity=3,
    needs=("ops",),
    check=check,
    settings=(
        Setting(
            "reach",
            14,
            "Ops between the softmax and its two matmuls at most",
            "ours: scale, mask, dropout, cast and reshapes",
        ),
        Setting(
            "attention_share",
            0.04,
            "Smallest part of the step",
            "ours: above the 'medium' limit of severities",
        ),
        Setting(
            "saved_share",
            0.5,
            "Part of the time that the fused kernel saves",
            "measured on the planted program; the FlashAttention paper reports 2 to 4 times on GPUs",
        ),
    ),
)
