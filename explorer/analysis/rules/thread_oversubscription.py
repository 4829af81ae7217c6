"""More compute threads than processor cores."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.analysis.rule import Draft, NotChecked, Rule, Setting
from explorer.analysis.rule_context import RuleContext
from explorer.model.finding import Saving


def check(context: RuleContext) -> Sequence[Draft] | NotChecked:
    host = context.engine.reader.manifests[context.scope.rank].host
    threads, cores = host.get("torch_threads"), host.get("usable_cpus") or host.get("cpu_count")
    if not isinstance(threads, int) or not isinstance(cores, int) or cores < 1:
        return NotChecked(RULE.name, "the run does not say how many threads and cores there were")
    if threads <= context.setting(RULE, "threads_per_core") * cores:
        return []
    # Ops above the grain size are split over all threads; each waits for the slowest of them.
    ops = f"""SELECT o.event_id, o.start_ns, o.duration_ns, o.executing_site_id AS site_id FROM top_ops o
WHERE {context.where("o")} AND o.duration_ns >= {context.setting(RULE, "parallel_op_ns"):.0f}"""
    loops = f"""SELECT count(*) FROM events e WHERE {context.where()} AND e.category = 'op'
  AND e.self_ns >= {context.setting(RULE, "parallel_op_ns"):.0f}"""
    evidence, row = context.evidence(
        f"{threads} compute threads share {cores} cores; "
        + "{ops} ops long enough to be split take {time_ns} per step, with {loops} loops over all threads.",
        f"""SELECT count(*) / {context.count} AS ops, (coalesce(sum(duration_ns), 0) / {context.count})::BIGINT AS time_ns,
  ({loops}) / {context.count} AS loops FROM ({ops})""",
        f"SELECT event_id FROM ({ops}) ORDER BY duration_ns DESC, event_id",
    )
    time_ns = row["time_ns"]
    if time_ns < context.setting(RULE, "parallel_share") * context.scope.mean_ns:
        return []
    lines = context.costliest_lines(ops)
    # At the end of each loop the op waits until every thread has had its turn on a core.
    waiting_ns = row["loops"] * (threads - cores) * context.setting(RULE, "turn_ns")
    expected = round(min(waiting_ns, context.setting(RULE, "most_share") * time_ns))
    return [
        Draft(
            title="More compute threads than cores",
            line_times_ns={
                **dict.fromkeys(_setting_lines(context), 0),
                **lines,
            },
            saving=Saving(low=expected // 2, expected=expected, high=min(time_ns, 2 * expected)),
            evidence=[evidence],
            advice=f"Call torch.set_num_threads({cores}) or set OMP_NUM_THREADS={cores}; divide the cores among the processes of one machine.",
            affected=ops,
            remaining_share=1 - expected / time_ns,
            confidence="medium",
            caveats=["How much is lost depends on the scheduler; measure after the change."],
            key="threads",
        )
    ]


def _setting_lines(context: RuleContext) -> list[int]:
    """Lines that set the number of threads: the last one before the steps, which they ran with, comes first."""
    sites = [site for site, line in context.codes.items() if "set_num_threads" in (line["code"] or "")]
    if not sites:
        return []
    rows = context.rows(
        f"""SELECT s.site_id, max(h.start_ns) FILTER (h.start_ns < {context.scope.start_ns}) AS before_ns FROM sites s
        LEFT JOIN host_states h ON h.site_id = s.site_id AND h.rank = {context.scope.rank}
        WHERE {context.in_sites("s.site_id", sites)} GROUP BY s.site_id ORDER BY before_ns DESC NULLS LAST, s.site_id"""
    )
    return [row["site_id"] for row in rows]


RULE = Rule(
    name="thread_oversubscription",
    title="Thread oversubscription",
    specificity=1,
    needs=("ops",),
    check=check,
    settings=(
        Setting(
            "threads_per_core",
            1.5,
            "Most threads per usable core",
            "ours: two hyper-threads count as two cores",
        ),
        Setting(
            "parallel_op_ns",
            50_000,
            "Shortest op that is taken to be split",
            "ATen's grain size of 32768 elements takes about this long",
        ),
        Setting("parallel_share", 0.2, "Smallest part of the step in such ops", "ours"),
        Setting(
            "turn_ns",
            12_000,
            "What each thread beyond the cores adds to a loop",
            "measured: 11.5 to 17 µs (sum, add and tanh of 200,000 to 1,000,000 elements, 6 to 32 threads on 2 cores)",
        ),
        Setting("most_share", 0.9, "Largest part of the ops' time that is waiting", "ours"),
    ),
)
