"""Device memory is taken from and given back to the driver in steady state."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.analysis.rule import Draft, Rule, Setting
from explorer.analysis.rule_context import RuleContext
from explorer.analysis.rule_sql import union_ns
from explorer.model.finding import Saving

CALLS = (
    "cudaMalloc", "cudaFree", "cudaMallocAsync", "cudaFreeAsync", "cudaHostAlloc", "cudaFreeHost", "cuMemCreate", "cuMemRelease",
    "cuMemMap", "cuMemUnmap", "cuMemSetAccess", "hipMalloc", "hipFree", "hipHostMalloc", "hipHostFree", "hipExtMallocWithFlags",
    "aclrtMalloc", "aclrtFree", "nrt_tensor_allocate", "nrt_tensor_free",
)  # fmt: skip


def check(context: RuleContext) -> Sequence[Draft]:
    calls = f"""SELECT e.event_id, e.start_ns, e.duration_ns, e.name, coalesce(k.site_id, e.site_id) AS site_id FROM events e
LEFT JOIN stacks k ON k.stack_id = e.stack_id AND k.depth = 0
WHERE {context.where()} AND e.category IN ('runtime', 'sync') AND {context.in_texts("e.name", CALLS)}"""
    evidence, row = context.evidence(
        "{calls} calls per step take memory from the driver or give it back, for {time_ns} per step.",
        f"""SELECT (SELECT count(*) FROM ({calls})) / {context.count} AS calls, (union_ns / {context.count})::BIGINT AS time_ns
FROM ({union_ns(calls)})""",
        f"SELECT event_id FROM ({calls}) ORDER BY duration_ns DESC, event_id",
    )
    time_ns = row["time_ns"]
    if time_ns < context.setting(RULE, "churn_share") * context.scope.mean_ns:
        return []
    lines = context.costliest_lines(calls)
    return [
        Draft(
            title="Device memory is allocated and freed in each step",
            line_times_ns=lines,
            saving=Saving(low=time_ns // 3, expected=round(0.8 * time_ns), high=time_ns),
            evidence=[evidence],
            advice="Take torch.cuda.empty_cache() out of the loop; against fragmentation set PYTORCH_ALLOC_CONF=expandable_segments:True "
            "and keep shapes alike (padding, buckets); leave some memory free, as near the limit each step frees and takes again.",
            affected=f"SELECT event_id, start_ns, duration_ns FROM ({calls})",
            remaining_share=0.2,
            confidence="high" if context.count > 2 else "low",
            caveats=[]
            if context.count > 2
            else ["In a first step such calls are normal: look at later steps."],
            key="" if lines else "allocator",
        )
    ]


RULE = Rule(
    name="allocator_churn",
    title="Allocator churn",
    specificity=3,
    needs=("device",),
    check=check,
    settings=(
        Setting(
            "churn_share",
            0.01,
            "Smallest part of the step in such calls",
            "ours: a warm caching allocator makes none",
        ),
    ),
)
