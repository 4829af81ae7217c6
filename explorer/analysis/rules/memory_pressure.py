"""A device's memory is nearly full, or much of what is reserved lies in pieces too small to use."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.analysis.engine import literal
from explorer.analysis.rule import Draft, Rule, Setting
from explorer.analysis.rule_context import RuleContext
from explorer.model.finding import Saving


def check(context: RuleContext) -> Sequence[Draft]:
    devices = context.rows(
        f"""SELECT m.device, m.peak_bytes, m.peak_reserved_bytes, max(d.memory_bytes) AS memory_bytes,
          max(1 - m.peak_bytes / nullif(m.peak_reserved_bytes, 0)) AS unused_share
        FROM memory_summary m LEFT JOIN devices d ON d.rank = m.rank AND d.device = m.device
        WHERE m.rank = {context.scope.rank} AND m.device <> 'cpu' GROUP BY ALL ORDER BY m.device"""
    )
    drafts = []
    for row in devices:
        size, reserved = row["memory_bytes"], row["peak_reserved_bytes"] or row["peak_bytes"]
        full = bool(size) and reserved >= context.setting(RULE, "full_share") * size
        scattered = (row["unused_share"] or 0) >= context.setting(RULE, "unused_share")
        # Unused reserve is a cache as long as memory is left.
        if full or (scattered and (not size or reserved >= context.setting(RULE, "worth_share") * size)):
            drafts.append(_draft(context, row["device"], full, scattered))
    return drafts


def _draft(context: RuleContext, device: str, full: bool, scattered: bool) -> Draft:
    evidence, _ = context.evidence(
        f"At the peak {device} has "
        + "{peak_bytes} allocated; {reserved_bytes} are reserved at most, of a memory of {memory_bytes}.",
        f"""SELECT m.peak_bytes, coalesce(m.peak_reserved_bytes, m.peak_bytes) AS reserved_bytes, max(d.memory_bytes) AS memory_bytes
FROM memory_summary m LEFT JOIN devices d ON d.rank = m.rank AND d.device = m.device
WHERE m.rank = {context.scope.rank} AND m.device = {literal(device)} GROUP BY ALL""",
    )
    lines = context.rows(
        f"""SELECT site_id, sum(size_bytes) AS held_bytes FROM memory_peak
        WHERE rank = {context.scope.rank} AND device = {literal(device)} AND site_id IS NOT NULL GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 3"""
    )
    code = context.code(lines[0]["site_id"]) if lines else ""
    advice = []
    if scattered:
        advice.append(
            "set PYTORCH_ALLOC_CONF=expandable_segments:True and keep shapes alike (pad or bucket them), so that freed pieces fit again"
        )
    if full:
        advice.append(
            (f"most at the peak was allocated at `{code}`; " if code else "")
            + "smaller micro-batches with gradient accumulation, activation checkpointing, or sharded states (FSDP) lower the peak"
        )
    return Draft(
        title=f"Memory of {device} is nearly full" if full else f"Memory of {device} is fragmented",
        line_times_ns={item["site_id"]: 0 for item in lines},
        saving=Saving(0, 0, 0, "none"),
        evidence=[evidence],
        advice="; ".join(advice)[:1].upper() + "; ".join(advice)[1:] + ".",
        affected="",
        side="device",
        confidence="medium",
        caveats=["Reserved memory that is not allocated may be no more than the allocator's cache."]
        if scattered
        else [],
        key=device,
        notice="medium" if full else "low",
    )


RULE = Rule(
    name="memory_pressure",
    title="Memory nearly full or fragmented",
    specificity=2,
    needs=("memory_events", "device"),
    check=check,
    settings=(
        Setting(
            "full_share",
            0.92,
            "Part of a device's memory from which it counts as full",
            "ours: cuBLAS, NCCL and the driver need the rest",
        ),
        Setting(
            "unused_share",
            0.3,
            "Part of the reserved memory that is not allocated at the peak, to count as fragmented",
            "ours",
        ),
        Setting(
            "worth_share",
            0.5,
            "Part of a device's memory that must be reserved before fragmentation matters",
            "ours",
        ),
    ),
)
