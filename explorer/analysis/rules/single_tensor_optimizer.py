"""The optimizer updates one parameter tensor after the other."""

from __future__ import annotations

import re
from collections.abc import Sequence

from explorer.analysis.rule import Draft, Rule, Setting
from explorer.analysis.rule_context import RuleContext
from explorer.analysis.rule_sql import union_ns
from explorer.analysis.source_mentions import mentions
from explorer.model.finding import Saving


def check(context: RuleContext) -> Sequence[Draft]:
    optimizers = context.rows(
        f"""SELECT e.name, coalesce(k.site_id, e.site_id) AS site_id, count(*) AS calls FROM events e
        LEFT JOIN stacks k ON k.stack_id = e.stack_id AND k.depth = 0
        WHERE {context.where()} AND e.category = 'annotation' AND e.name LIKE 'Optimizer.step#%'
        GROUP BY ALL ORDER BY e.name, site_id"""
    )
    drafts = []
    for optimizer in optimizers:
        site = optimizer["site_id"]
        ranges = f"""SELECT e.event_id, e.track_id, e.start_ns, e.duration_ns FROM events e
LEFT JOIN stacks k ON k.stack_id = e.stack_id AND k.depth = 0
WHERE {context.where()} AND e.category = 'annotation' AND e.name = '{optimizer["name"].replace("'", "''")}'
  AND coalesce(k.site_id, e.site_id) IS NOT DISTINCT FROM {site if site is not None else "NULL"}"""
        evidence, row = context.evidence(
            "The optimizer step calls {ops} ops, {batched} of them on whole lists of tensors, and takes {optimizer_ns} of the step, {op_ns} of it in ops.",
            f"""SELECT (SELECT union_ns / {context.count} FROM ({union_ns(ranges)}))::BIGINT AS optimizer_ns,
  count(o.event_id) / {context.count} AS ops,
  count(*) FILTER (WHERE o.name LIKE 'aten::_foreach_%' OR o.name LIKE 'aten::_fused_%') / {context.count} AS batched,
  (coalesce(sum(o.duration_ns), 0) / {context.count})::BIGINT AS op_ns
FROM (SELECT * FROM top_ops o WHERE o.rank = {context.scope.rank}) o ASOF JOIN ({ranges}) r
ON o.track_id = r.track_id AND o.start_ns >= r.start_ns WHERE o.start_ns < r.start_ns + r.duration_ns""",
            ranges,
        )
        optimizer_ns = row["optimizer_ns"]
        if (
            "fused" in optimizer["name"].lower()
            or row["batched"]
            or row["ops"] < context.setting(RULE, "ops")
        ):
            continue
        if optimizer_ns < context.setting(RULE, "optimizer_share") * context.scope.mean_ns:
            continue
        name = optimizer["name"].split("#", 1)[1].removesuffix(".step")
        expected = _saving_ns(context, row)
        drafts.append(
            Draft(
                title=f"{name} updates one tensor at a time",
                line_times_ns={site: optimizer_ns} if site is not None else {},
                saving=Saving(
                    low=round(0.5 * expected),
                    expected=expected,
                    high=min(optimizer_ns, round(1.4 * expected)),
                ),
                evidence=[evidence],
                advice=_advice(name, context),
                affected=ranges,
                remaining_share=1 - expected / optimizer_ns,
                key="" if site is not None else name,
            )
        )
    return drafts


def _saving_ns(context: RuleContext, row: dict[str, int]) -> int:
    """Python between the ops goes, and of the ops' own time the cost of calling each and the repeated passes over memory."""
    python_ns = row["optimizer_ns"] - row["op_ns"]
    calls_ns = min(row["op_ns"], row["ops"] * context.setting(RULE, "call_ns"))
    passes_ns = (row["op_ns"] - calls_ns) * context.setting(RULE, "fused_share")
    return round(0.85 * python_ns + 0.9 * calls_ns + passes_ns)


def _advice(name: str, context: RuleContext) -> str:
    built = _construction(name, context)
    here = f"At {built}: build" if built else "Build"
    if name in {"Adam", "AdamW", "SGD", "Adagrad"}:
        return f"{here} it with torch.optim.{name}(..., fused=True): one pass over all parameters instead of several small ops for each."
    return f"{here} it with torch.optim.{name}(..., foreach=True) where it has that option: one call for all parameters instead of several for each."


def _construction(name: str, context: RuleContext) -> str:
    """Where the program's source builds such an optimizer: 'train.py:14 `optimizer = SGD(...)`'; empty unless there is one place."""
    found = [
        f"{file}:{line} `{code.split('#', 1)[0].strip()}`"
        for file, line, code in mentions(context, rf"\b{re.escape(name)}\(")
        if not code.startswith(("class ", "def "))
    ]
    return found[0] if len(found) == 1 else ""


RULE = Rule(
    name="single_tensor_optimizer",
    title="Single-tensor optimizer",
    specificity=3,
    needs=("ops",),
    check=check,
    settings=(
        Setting(
            "optimizer_share", 0.03, "Smallest part of the step", "ours: the 'medium' limit of severities"
        ),
        Setting("ops", 24, "Fewest ops per optimizer step", "ours: a handful of tensors gains nothing"),
        Setting(
            "call_ns", 1_500, "Part of each op's own time that is calling it", "measured: torch 2.13 on CPU"
        ),
        Setting(
            "fused_share",
            0.6,
            "Part of the memory passes that a fused update saves",
            "AdamW reads and writes each state about three times as ops, once fused",
        ),
    ),
)
