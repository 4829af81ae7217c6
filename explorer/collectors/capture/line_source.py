"""Where a capture's lines come from: the recorder for this interpreter, or the profiler's own stacks beside another tracer."""

from __future__ import annotations

import sys
from typing import Any

from explorer.collectors.capture.module_paths import ModulePaths, module_call_code
from explorer.collectors.lines.records import LineRecorder
from explorer.collectors.lines.user_code import UserCode


def make_line_recorder(user_code: UserCode, modules: ModulePaths | None) -> LineRecorder | None:
    """A recorder of lines, and of the calls of nn.Modules where `modules` is given; None where another tracer is active
    and would have to be displaced."""
    given: dict[str, Any] = {}
    if modules is not None and (code := module_call_code()) is not None:
        given = {"module_call": code, "module_key": modules.key}
    if hasattr(sys, "monitoring"):
        from explorer.collectors.lines.monitoring_recorder import MonitoringRecorder

        return MonitoringRecorder(user_code, **given)
    if sys.gettrace() is not None:
        return None
    from explorer.collectors.lines.settrace_recorder import SettraceRecorder

    return SettraceRecorder(user_code, **given)


def stacks_can_serve() -> bool:
    """Whether the profiler's stacks can take the place of a recorder: it replaces whatever profile function there is."""
    return sys.getprofile() is None
