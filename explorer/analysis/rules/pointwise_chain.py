"""A formula written as many pointwise ops, each one more pass over memory."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.analysis.op_sequence import SequenceOp, typical_step
from explorer.analysis.rule import Draft, Rule, Setting
from explorer.analysis.rule_context import RuleContext
from explorer.model.finding import Saving


def check(context: RuleContext) -> Sequence[Draft]:
    by_place: dict[tuple[str, str], list[list[SequenceOp]]] = {}
    for chain in _chains(context):
        by_place.setdefault(chain[0].place or ("", ""), []).append(chain)
    drafts = []
    for (file, function), chains in by_place.items():
        if draft := _draft(context, chains, f"{function} ({file})" if function else "an unknown function"):
            drafts.append(draft)
    return drafts


def _chains(context: RuleContext) -> list[list[SequenceOp]]:
    """Runs of pointwise ops and reductions within one function, views between them allowed."""
    shortest = context.setting(RULE, "short_op_ns")
    found: list[list[SequenceOp]] = []
    chain: list[SequenceOp] = []

    def close() -> None:
        nonlocal chain
        pointwise = [op for op in chain if op.family == "pointwise"]
        long_enough = sum(op.duration_ns for op in chain) >= shortest * len(chain)
        if len(pointwise) >= context.setting(RULE, "ops") and long_enough:
            found.append(chain)
        chain = []

    for op in typical_step(context):
        if op.family == "view":
            continue
        if op.family not in ("pointwise", "reduction") or op.place is None:
            close()
            continue
        if chain and chain[-1].place != op.place:
            close()
        chain.append(op)
    close()
    return found


def _draft(context: RuleContext, chains: list[list[SequenceOp]], place: str) -> Draft | None:
    ops = [op for chain in chains for op in chain]
    names = sorted({op.name for op in ops})
    sites = sorted({op.site_id for op in ops if op.site_id})
    chosen = f"""SELECT o.event_id, o.start_ns, o.duration_ns, o.name, o.executing_site_id AS site_id FROM top_ops o
WHERE {context.where("o")} AND o.phase IS DISTINCT FROM 'backward' AND {context.in_texts("o.name", names)} AND {context.in_sites("o.executing_site_id", sites)}"""
    backward = f"""SELECT o.event_id, o.start_ns, o.duration_ns, o.site_id FROM top_ops o
WHERE {context.where("o")} AND o.phase = 'backward' AND {context.in_sites("o.site_id", sites)} AND o.name NOT LIKE '%AccumulateGrad'"""
    evidence, row = context.evidence(
        "{calls} pointwise ops per step in a row take {time_ns} per step, their backward ops {backward_ns}.",
        f"""SELECT count(*) / {context.count} AS calls, (sum(duration_ns) / {context.count})::BIGINT AS time_ns,
  (SELECT coalesce(sum(duration_ns), 0) / {context.count} FROM ({backward}))::BIGINT AS backward_ns FROM ({chosen})""",
        f"SELECT event_id FROM ({chosen}) ORDER BY duration_ns DESC, event_id",
    )
    total_ns = row["time_ns"] + row["backward_ns"]
    if total_ns < context.setting(RULE, "chain_share") * context.scope.mean_ns:
        return None
    kept = _kept(context, chosen, len(chains))
    expected = round((1 - kept) * total_ns)
    times = context.costliest_lines(chosen, most=4)
    code = context.code(next(iter(times), None))
    return Draft(
        title=f"Unfused pointwise ops in {place}",
        line_times_ns=times,
        saving=Saving(low=expected // 2, expected=expected, high=total_ns),
        evidence=[evidence],
        advice=(
            f"`{code}` runs as {max(len(chain) for chain in chains)} passes over memory: " if code else ""
        )
        + "use the fused function where there is one (F.gelu, F.silu, F.layer_norm, F.rms_norm, torch.addcmul), or decorate the function with @torch.compile.",
        affected=f"SELECT event_id, start_ns, duration_ns FROM ({chosen}) UNION ALL SELECT event_id, start_ns, duration_ns FROM ({backward})",
        remaining_share=kept,
        confidence="medium",
        key=place,
    )


def _kept(context: RuleContext, chosen: str, chains: int) -> float:
    """What stays: one fused pass costs about what the most expensive op of a chain costs alone (by median durations)."""
    rows = context.rows(
        f"SELECT count(*) / {context.count} AS calls, median(duration_ns) AS typical_ns FROM ({chosen}) GROUP BY name, site_id"
    )
    total = sum(row["calls"] * row["typical_ns"] for row in rows)
    largest = max((row["typical_ns"] for row in rows), default=0)
    return min(1.0, float(chains * largest / total)) if total else 1.0


RULE = Rule(
    name="pointwise_chain",
    title="Unfused pointwise ops",
    specificity=2,
    needs=("ops",),
    check=check,
    settings=(
        Setting("ops", 4, "Fewest pointwise ops in a row", "ours: two or three are common and gain little"),
        Setting(
            "short_op_ns",
            15_000,
            "Shortest mean op: below it calling, not memory, is the cost (see tiny_ops)",
            "measured: an eager op on CPU costs 3 to 10 µs",
        ),
        Setting(
            "chain_share", 0.04, "Smallest part of the step", "ours: above the 'medium' limit of severities"
        ),
    ),
)
