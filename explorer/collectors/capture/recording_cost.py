"""What recording will cost in this process, measured before it begins."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from explorer.collectors.capture.calibration import measure_op_ns, measure_tracing, recorder_name
from explorer.collectors.capture.kineto_window import make_profiler
from explorer.collectors.capture.settings import CaptureSettings
from explorer.collectors.lines.budget import CALL_NS, RECORD_NS
from explorer.collectors.lines.records import LineRecorder

_LINE_NS = 238
"""What `line_ns` is where a call and a record cost what `budget` says."""


def costs_here(cost: dict[str, Any]) -> tuple[float, float]:
    """Nanoseconds of a traced call and of a record in this process, by the account that `recording_cost` gives."""
    # A busy machine makes a measurement longer, hardly shorter; neither may make recording stop or run wild.
    slower = min(4.0, max(0.7, cost.get("line_ns", _LINE_NS) / _LINE_NS))
    return CALL_NS * slower, RECORD_NS * slower


def recording_cost(
    settings: CaptureSettings, activities: list[Any], make_recorder: Callable[[], LineRecorder | None]
) -> dict[str, Any]:
    """The manifest's account of the cost: nanoseconds per op, line, library call and module call."""
    cost: dict[str, Any] = {"method": "kineto"}
    try:
        cost["op_ns"] = round(
            measure_op_ns(
                lambda: make_profiler(
                    activities,
                    shapes=settings.record_shapes is True,
                    memory=settings.profile_memory,
                    all_threads=False,
                    compat=False,
                )
            ),
            1,
        )
        if settings.lines and not (sys.gettrace() and not hasattr(sys, "monitoring")):
            tracing = measure_tracing(make_recorder)
            cost |= {
                "line_ns": round(tracing.line_ns, 1),
                "call_ns": round(tracing.call_ns, 1),
                "module_ns": round(tracing.module_ns, 1),
                "method": f"kineto + {recorder_name()}",
            }
    except Exception as error:
        cost["failed"] = str(error)
    return cost
