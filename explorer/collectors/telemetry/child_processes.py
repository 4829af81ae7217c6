"""Processor time of the processes that a program started (workers of a DataLoader), from Linux's /proc."""

from __future__ import annotations

import os
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
_PROC = Path("/proc")


def children_seconds(pid: int, proc: Path = _PROC) -> float | None:
    """Seconds of processor time of all processes below one, those that have ended included. None where the system does not
    say which they are."""
    if not (proc / str(pid) / "task" / str(pid) / "children").exists():
        return None
    own = _stat(proc, pid)
    # What it waited for counts already: with what those had waited for.
    seconds = own[1] if own else 0.0
    waiting, seen = _children(proc, pid), {pid}
    while waiting:
        child = waiting.pop()
        if child in seen:
            continue
        seen.add(child)
        if (times := _stat(proc, child)) is not None:
            seconds += sum(times)
            waiting += _children(proc, child)
    return seconds


def _children(proc: Path, pid: int) -> list[int]:
    found: list[int] = []
    try:
        for thread in os.listdir(proc / str(pid) / "task"):
            found += map(int, (proc / str(pid) / "task" / thread / "children").read_text().split())
    except (OSError, ValueError):
        pass  # it has ended meanwhile
    return found


def _stat(proc: Path, pid: int) -> tuple[float, float] | None:
    """Seconds of a process, and of those below it that have ended and were waited for."""
    try:
        # The name may hold spaces and brackets: fields are counted from the last bracket on.
        fields = (proc / str(pid) / "stat").read_text().rpartition(")")[2].split()
        user, system, child_user, child_system = map(int, fields[11:15])
    except (OSError, ValueError):
        return None
    return (user + system) / _TICKS, (child_user + child_system) / _TICKS
