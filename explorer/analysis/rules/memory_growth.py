"""Memory grows from step to step: something keeps what each step made."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.analysis.engine import literal
from explorer.analysis.rule import Draft, NotChecked, Rule, Setting
from explorer.analysis.rule_context import RuleContext
from explorer.model.finding import Saving


def check(context: RuleContext) -> Sequence[Draft] | NotChecked:
    steps = context.scope.later_numbers
    if len(steps) < context.setting(RULE, "steps"):
        return NotChecked(RULE.name, "the run holds too few steps to tell growth from warming up")
    # The first step fills caches and optimizer states; its successor's growth is measured against it.
    growth = f"""SELECT * FROM memory_steps WHERE rank = {context.scope.rank} AND step BETWEEN {steps[1]} AND {steps[-1]}
  AND growth_bytes IS NOT NULL"""
    devices = context.rows(
        f"""SELECT device, median(growth_bytes)::BIGINT AS growth_bytes FROM ({growth}) GROUP BY device
        HAVING count(*) FILTER (growth_bytes > 0) >= {context.setting(RULE, "growing_share")} * count(*)
          AND median(growth_bytes) >= {context.setting(RULE, "growth_bytes")}
        ORDER BY growth_bytes DESC, device"""
    )
    return [_draft(context, row["device"], growth) for row in devices]


def _draft(context: RuleContext, device: str, growth: str) -> Draft:
    evidence, row = context.evidence(
        f"Memory of {device} grows by "
        + "{growth_bytes} in a step, in {growing} of {steps} steps; the peak is {peak_bytes}.",
        f"""SELECT median(growth_bytes)::BIGINT AS growth_bytes, count(*) FILTER (growth_bytes > 0) AS growing, count(*) AS steps,
  max(peak_bytes) AS peak_bytes FROM ({growth}) WHERE device = {literal(device)}""",
    )
    # What a step leaves behind: blocks that it allocated and nothing freed until the end.
    left = context.rows(
        f"""SELECT b.site_id, sum(b.size_bytes)::BIGINT AS left_bytes FROM memory_blocks b JOIN steps s ON s.rank = b.rank
          AND b.allocated_ns >= s.start_ns AND b.allocated_ns < s.start_ns + s.duration_ns
        WHERE b.rank = {context.scope.rank} AND b.device = {literal(device)} AND b.freed_ns IS NULL AND b.site_id IS NOT NULL
          AND s.step BETWEEN {context.scope.later_numbers[1]} AND {context.scope.later_numbers[-2]}
        GROUP BY 1 ORDER BY left_bytes DESC, 1 LIMIT 3"""
    )
    code = context.code(left[0]["site_id"]) if left else ""
    return Draft(
        title=f"Memory of {device} grows in each step",
        line_times_ns={item["site_id"]: 0 for item in left},
        saving=Saving(0, 0, 0, "none"),
        evidence=[evidence],
        advice=(f"What `{code}` allocates is not freed: " if code else "")
        + "look for a list or attribute that keeps tensors with their graph (append loss.item() or loss.detach(), not loss), for hidden "
        "state carried over steps without detach(), retain_graph=True and caches without a limit.",
        affected="",
        confidence="high" if row["growing"] == row["steps"] else "medium",
        caveats=[
            "No time is lost until the memory is full; then the program dies or the allocator starts to give back and take."
        ],
        key=device,
        notice="medium",
    )


RULE = Rule(
    name="memory_growth",
    title="Memory growth per step",
    specificity=2,
    needs=("memory_events",),
    check=check,
    settings=(
        Setting(
            "steps",
            4,
            "Fewest steps after the first",
            "ours: caches and optimizer states fill in the first two",
        ),
        Setting("growing_share", 0.8, "Smallest part of the steps that grow", "ours"),
        Setting(
            "growth_bytes",
            4_096,
            "Smallest median growth",
            "ours: a loss that is kept with a small graph leaves a few KiB",
        ),
    ),
)
