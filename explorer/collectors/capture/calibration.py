"""What profiling itself costs on this machine: nanoseconds per op range, line record and traced call, measured on the spot."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_CALLS = 20
"""Ops, lines or calls in one round: short, so that some rounds of many are not interrupted; and so few in all that no
recorder takes them for a hot loop and switches itself off."""

_ROUNDS = 30


def measure_op_ns(make: Callable[[], Any]) -> float:
    """Extra time of one op range under a session that `make` builds, and never negative."""
    import torch

    tensor = torch.zeros(1)

    def work() -> None:
        for _ in range(_CALLS):
            tensor.view(1)

    plain = _best(work)
    session = make()
    session.start()
    try:
        profiled = _best(work)
    finally:
        session.stop()
    return max(0.0, (profiled - plain) / _CALLS)


_SAMPLE = """
def sample(count):
    for index in range(count):
        value = index
        value = index
"""


@dataclass(frozen=True)
class TracingCost:
    """Extra time of one line of user code, of one call of library code, and of one call of an nn.Module (its library
    calls aside)."""

    line_ns: float
    call_ns: float
    module_ns: float


def measure_tracing(make: Callable[[], Any]) -> TracingCost:
    """What a recorder that `make` builds costs; never negative."""
    import torch

    scope: dict[str, Any] = {"__name__": "calibration"}
    exec(compile(_SAMPLE, "<calibration>", "exec"), scope)
    sample = scope["sample"]
    # A layer of a model: what a program calls most outside its own code. `bare` is the call without the record of a module.
    module, tensor = torch.nn.Linear(4, 4), torch.zeros(1, 4)
    bare = module._call_impl
    with torch.inference_mode():
        bare_calls, module_calls = _python_calls(bare, tensor), _python_calls(module, tensor)

        def lines() -> None:
            sample(_CALLS)

        def calls() -> None:
            for _ in range(_CALLS):
                bare(tensor)

        def modules() -> None:
            for _ in range(_CALLS):
                module(tensor)

        line_ns, bare_ns, module_ns = (_traced_ns(make, work) for work in (lines, calls, modules))
    call_ns = bare_ns / bare_calls
    return TracingCost(line_ns / 3, call_ns, max(0.0, module_ns - module_calls * call_ns))


def _python_calls(function: Callable[[Any], Any], argument: Any) -> int:
    """Python functions that a call of this function runs, itself included."""
    made = 0

    def count(frame: Any, event: str, result: Any) -> None:
        nonlocal made
        made += event == "call"

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        function(argument)
    finally:
        sys.setprofile(before)
    return max(1, made)


def _traced_ns(make: Callable[[], Any], work: Callable[[], None]) -> float:
    plain = _best(work)
    recorder = make()
    recorder.start(None)
    try:
        traced = _best(work)
    finally:
        recorder.stop()
    return max(0.0, (traced - plain) / _CALLS)


def _best(work: Callable[[], None]) -> int:
    """Shortest processor time of many rounds: other programs only ever add to it."""
    work()
    return min(_timed(work) for _ in range(_ROUNDS))


def _timed(work: Callable[[], None]) -> int:
    begin = time.thread_time_ns()
    work()
    return time.thread_time_ns() - begin


def recorder_name() -> str:
    """Which recorder this Python has."""
    return "sys.monitoring" if hasattr(sys, "monitoring") else "sys.settrace"
