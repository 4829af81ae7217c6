"""Passes of Python's garbage collector, seen through gc.callbacks."""

from __future__ import annotations

import gc
import threading
import time
from typing import Any

from explorer.collectors.capture.host_event import HostEvent

MIN_DURATION_NS = 20_000
"""Shorter passes (most of generation 0) are summed up, not written one by one."""


class GcRecorder:
    """Collects one HostEvent per pass while `enabled`."""

    def __init__(self) -> None:
        self.enabled = False
        self.short_passes = 0
        self.short_ns = 0
        self._events: list[HostEvent] = []
        self._begin = 0

    def start(self) -> None:
        gc.callbacks.append(self._seen)

    def stop(self) -> None:
        if self._seen in gc.callbacks:
            gc.callbacks.remove(self._seen)

    def take(self) -> list[HostEvent]:
        events, self._events = self._events, []
        return events

    def _seen(self, phase: str, info: dict[str, Any]) -> None:
        if not self.enabled:
            return
        now = time.time_ns()
        if phase == "start":
            self._begin = now
            return
        begin, self._begin = self._begin, 0
        if not begin:
            return
        duration = now - begin
        if duration < MIN_DURATION_NS:
            self.short_passes += 1
            self.short_ns += duration
            return
        self._events.append(
            HostEvent(
                threading.get_native_id(),
                "gc",
                f"gc generation {info.get('generation', '?')}",
                begin,
                duration,
                f'{{"collected":{info.get("collected", 0)},"uncollectable":{info.get("uncollectable", 0)}}}',
            )
        )
