"""Times and ids of an Nsight Systems export."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from explorer.collectors.sqlite_file import SqliteFile

_PID_MASK = 0xFFFFFF


@dataclass(frozen=True, slots=True)
class Clock:
    """Offset from the export's nanoseconds to the Unix epoch.

    Event times count from the start of the session, whose UTC time the export stores. Exports of 2026 count from the
    system clock instead and store its value at the same moment.
    """

    base_ns: int
    known: bool

    @classmethod
    def of(cls, file: SqliteFile) -> Clock:
        for epoch, system in file.rows("TARGET_INFO_SESSION_START_TIME", ("utcEpochNs", "systemClockNs")):
            if isinstance(epoch, int):
                return cls(epoch - (system if isinstance(system, int) else 0), True)
        return cls(0, False)


def process_of(global_id: Any) -> int | None:
    """Process id inside a globalTid or globalPid: bits 24 to 47."""
    return (global_id >> 24) & _PID_MASK if isinstance(global_id, int) else None


def thread_of(global_id: Any) -> int | None:
    """Thread id inside a globalTid: the lowest 24 bits."""
    return global_id & _PID_MASK if isinstance(global_id, int) else None


def link_key(process: int | None, correlation: Any) -> int:
    """Correlation ids are unique per process: one number for both; 0 where there is none."""
    if not isinstance(correlation, int) or correlation <= 0:
        return 0
    return ((process or 0) & 0x7FFFFF) << 40 | (correlation & 0xFF_FFFF_FFFF)
