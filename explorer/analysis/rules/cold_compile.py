"""Compilation lies inside the recording, and in what is measured."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.analysis.rule import Draft, Rule, Setting
from explorer.analysis.rule_context import RuleContext
from explorer.analysis.rule_sql import union_ns
from explorer.analysis.rules.recompiles import compilations
from explorer.model.finding import Saving


def check(context: RuleContext) -> Sequence[Draft]:
    scope = context.scope
    compiles = compilations(context)
    if not compiles:
        return []
    if scope.all_numbers:
        compiles += f" AND coalesce(e.step <= {scope.all_numbers[0]}, TRUE)"
    evidence, row = context.evidence(
        "{compiles} compilations took {compile_ns} of the "
        + (
            f"recording up to the end of its first complete step ({scope.all_numbers[0]})."
            if scope.all_numbers
            else "recording."
        ),
        f"SELECT (SELECT count(*) FROM ({compiles})) AS compiles, union_ns AS compile_ns FROM ({union_ns(compiles)})",
        f"SELECT event_id FROM ({compiles}) ORDER BY duration_ns DESC, event_id",
    )
    compile_ns = row["compile_ns"]
    if compile_ns < context.setting(RULE, "compile_share") * scope.mean_ns:
        return []
    lines = context.costliest_lines(compiles, steps=1)
    code = context.code(next(iter(lines), None))
    # Steady steps do not compile: a recording with steps loses nothing but the first, one without is measured with it.
    timed = not scope.all_numbers
    return [
        Draft(
            title="Compilation inside the measured window",
            line_times_ns=lines if timed else dict.fromkeys(lines, 0),
            saving=Saving(compile_ns // 2, compile_ns, compile_ns) if timed else Saving(0, 0, 0, "none"),
            evidence=[evidence],
            advice=(f"`{code}` runs compiled code for the first time: " if code else "")
            + "run a step or two before measuring (neuron_profile(schedule=torch.profiler.schedule(wait=1, warmup=1, active=...))), and keep "
            "the compiler's cache between starts (TORCHINDUCTOR_CACHE_DIR, torch.compiler.save_cache_artifacts).",
            affected=f"SELECT start_ns, duration_ns FROM ({compiles})" if timed else "",
            confidence="high",
            caveats=[]
            if timed
            else ["The first step is left out of the times of the other findings where it is much longer."],
            key="" if lines else "cold",
            notice="" if timed else "low",
        )
    ]


RULE = Rule(
    name="cold_compile",
    title="Cold compilation in the measured window",
    specificity=3,
    needs=("ops",),
    check=check,
    settings=(
        Setting(
            "compile_share",
            0.1,
            "Smallest compile time, as a part of a step (of the recording where it has no steps)",
            "ours",
        ),
    ),
)
