"""What profiling itself costs on this machine: nanoseconds per op range and per line record, measured on the spot."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

_OPS = 400
_LINES = 2_000
_ROUNDS = 3


def measure_op_ns(make: Callable[[], Any]) -> float:
    """Extra time of one op range under a session that `make` builds, and never negative."""
    import torch

    tensor = torch.zeros(1)

    def work() -> int:
        begin = time.perf_counter_ns()
        for _ in range(_OPS):
            tensor.view(1)
        return time.perf_counter_ns() - begin

    work()
    plain = min(work() for _ in range(_ROUNDS))
    session = make()
    session.start()
    try:
        work()
        profiled = min(work() for _ in range(_ROUNDS))
    finally:
        session.stop()
    return max(0.0, (profiled - plain) / _OPS)


_SAMPLE = """
def sample(count):
    for index in range(count):
        value = index
        value = index
"""


def measure_line_ns(make: Callable[[], Any]) -> tuple[float, float]:
    """Extra time of one line of user code and of one call of library code under a recorder that `make` builds."""
    # A pure-Python function of the standard library: what the recorder sees and skips.
    from posixpath import splitdrive

    scope: dict[str, Any] = {"__name__": "calibration"}
    exec(compile(_SAMPLE, "<calibration>", "exec"), scope)
    sample = scope["sample"]
    count = _LINES // 3

    def lines() -> int:
        begin = time.perf_counter_ns()
        sample(count)
        return time.perf_counter_ns() - begin

    def calls() -> int:
        begin = time.perf_counter_ns()
        for _ in range(count):
            splitdrive("a")
        return time.perf_counter_ns() - begin

    plain = _best(lines), _best(calls)
    recorder = make()
    recorder.start(None)
    try:
        traced = _best(lines), _best(calls)
    finally:
        recorder.stop()
    return max(0.0, (traced[0] - plain[0]) / (3 * count)), max(0.0, (traced[1] - plain[1]) / count)


def _best(measure: Callable[[], int]) -> int:
    measure()
    return min(measure() for _ in range(_ROUNDS))


def recorder_name() -> str:
    """Which recorder this Python has."""
    return "sys.monitoring" if hasattr(sys, "monitoring") else "sys.settrace"
