"""What the end of a capture says of it: what was not recorded, where lines are missing or rough, and why."""

from __future__ import annotations

from explorer.collectors.capture.run_tables import RunTables
from explorer.collectors.capture.settings import CaptureSettings
from explorer.collectors.capture.side_recorders import SideRecorders
from explorer.collectors.capture.steps import Steps
from explorer.collectors.capture.windows import Windows


def say_health(
    settings: CaptureSettings, windows: Windows, tables: RunTables, side: SideRecorders, steps: Steps
) -> None:
    """Rows of `health` at the end of a capture."""
    say = tables.writer.health
    if windows.failed:
        say("capture_failed", "error", 1, f"Capture ended early: {windows.failed}", None, "everything")
    if steps.unrecorded:
        why = (
            f"the limit of {settings.max_events:,} events per rank was reached"
            if windows.plan.spent
            else "the program's own profiler was running"
            if windows.gave_way and settings.schedule is None
            else "the schedule left them out"
        )
        say(
            "not_captured",
            "info",
            steps.unrecorded,
            f"{steps.unrecorded} steps ran without being recorded: {why}.",
            "Raise max_events or change the schedule to record more steps.",
            "steps",
        )
    if windows.stacks is not None:
        say(
            "lines_from_stacks",
            "warning",
            1,
            "Another tracer (a debugger, coverage) is active, so lines come from the profiler's Python stacks: exact inside"
            " calls, likely for operators; no modules, no other threads, and recording costs more.",
            "Run without a debugger or coverage tool, or on Python 3.12 or later.",
            "lines, bottlenecks",
        )
    elif windows.recorder is None:
        say(
            "no_lines",
            "warning",
            1,
            "No source lines were recorded: "
            + ("lines=False." if not settings.lines else "another tracer and a profile function are active."),
            "Run without a debugger or coverage tool, with lines=True.",
            "lines, bottlenecks",
        )
    elif windows.recorder.hot:
        names = ", ".join(sorted(f"{code.co_qualname}" for code in windows.recorder.hot)[:5])
        say(
            "coarse_lines",
            "info",
            len(windows.recorder.hot),
            f"Lines were given up for hot pure-Python code ({names}): only the function is known there.",
            None,
            "lines",
        )
    if windows.recorder is not None and windows.recorder.displaced:
        say(
            "tracer_took_over",
            "warning",
            windows.recorder.displaced,
            "Another tracer (a debugger, coverage) was started while recording: there are no lines while it ran.",
            "Run without it, or on Python 3.12 or later.",
            "lines",
        )
    if tables.loader_rows.full or tables.loader_rows.hot:
        names = ", ".join(sorted(tables.loader_rows.hot)[:5])
        say(
            "coarse_lines",
            "info",
            max(1, len(tables.loader_rows.hot)),
            "Lines were given up in DataLoader workers: "
            + (f"hot pure-Python code ({names})" if names else "more states than a worker keeps")
            + ".",
            None,
            "lines",
        )
    if windows.gave_way:
        say(
            "program_profiler",
            "warning",
            windows.gave_way,
            f"The program started a torch profiler of its own {windows.gave_way} times: nothing was recorded while it ran.",
            "Switch the program's profiler off to record every step.",
            "steps",
        )
    if side.files.dropped:
        say(
            "io_not_kept",
            "info",
            side.files.dropped,
            "More file operations than a window keeps: the rest is counted only.",
            None,
            "file_io",
        )
    if side.gc.short_passes:
        say(
            "short_gc_passes",
            "info",
            side.gc.short_passes,
            f"{side.gc.short_passes} garbage collections shorter than 20 us took {side.gc.short_ns / 1e6:.2f} ms"
            " in all; they are not events.",
            None,
            None,
        )
    if settings.threads == "all" and settings.profile_memory:
        say(
            "threads_left_out",
            "warning",
            1,
            "Ops of other Python threads were not recorded: the profiler cannot report memory at the same time.",
            "Use threads='all' without profile_memory.",
            "ops",
        )
    total = sum(tables.coverage.self_ns.values())
    unknown = sum(v for (_, kind), v in tables.coverage.self_ns.items() if kind == "none")
    if total and (windows.recorder or windows.stacks) and unknown / total > 0.001:
        say(
            "ops_without_line",
            "info",
            0,
            f"{unknown / total:.1%} of host op time has no source line (threads without Python frames, or ops"
            " outside user code).",
            None,
            "lines",
        )
