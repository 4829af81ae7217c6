"""Tracks of a capture: one number per host thread and per device stream, kept for the whole run."""

from __future__ import annotations

import os
import threading
from typing import Any

from explorer.collectors.capture.activities import accelerator_type, private_backend_name

LOADER_WORKER = "DataLoader worker"
"""How the process names of DataLoader workers begin."""


class Tracks:
    """Numbers tracks in the order they are seen; rows are written once."""

    def __init__(self, main_native_id: int) -> None:
        self._threads: dict[int, int] = {}
        self._streams: dict[tuple[int, int], int] = {}
        self._counters: dict[str, int] = {}
        self._workers: dict[tuple[int, int], int] = {}
        self._new: list[dict[str, Any]] = []
        self._next = 0
        self._main = main_native_id
        self._process = os.getpid()
        self.thread(main_native_id)

    def _number(self) -> int:
        self._next += 1
        return self._next - 1

    @property
    def next_number(self) -> int:
        """The number the next new track will get."""
        return self._next

    def thread(self, native_id: int, name: str | None = None) -> int:
        """Track of a host thread, by its native id."""
        known = self._threads.get(native_id)
        if known is not None:
            return known
        track = self._threads[native_id] = self._number()
        if name is None:
            name = _thread_name(native_id)
        label = "main thread" if native_id == self._main else (name or f"thread {native_id}")
        self._new.append(
            {
                "track_id": track,
                "kind": "thread",
                "device_type": "cpu",
                "device_index": None,
                "process_id": self._process,
                "process_name": None,
                "thread_id": native_id,
                "thread_name": name,
                "label": label,
            }
        )
        return track

    def loader_worker(self, loader: int, worker: int, process_id: int, native_id: int) -> int:
        """Track of a DataLoader's worker; one for the same worker of all epochs."""
        known = self._workers.get((loader, worker))
        if known is not None:
            return known
        track = self._workers[loader, worker] = self._number()
        name = f"{LOADER_WORKER} {worker}" + (f" of loader {loader}" if loader > 1 else "")
        self._new.append(
            {
                "track_id": track,
                "kind": "thread",
                "device_type": "cpu",
                "device_index": None,
                "process_id": process_id,
                "process_name": name,
                "thread_id": native_id,
                "thread_name": name,
                "label": name,
            }
        )
        return track

    def stream(self, device_index: int, stream: int) -> int:
        """Track of a device stream."""
        known = self._streams.get((device_index, stream))
        if known is not None:
            return known
        device = accelerator_type() or private_backend_name()
        track = self._streams[(device_index, stream)] = self._number()
        self._new.append(
            {
                "track_id": track,
                "kind": "stream",
                "device_type": device,
                "device_index": device_index,
                "process_id": self._process,
                "process_name": None,
                "thread_id": stream,
                "thread_name": f"stream {stream}",
                "label": f"{device}:{device_index} stream {stream}",
            }
        )
        return track

    def counter(self, label: str, device_type: str = "cpu", device_index: int | None = None) -> int:
        """Track of counters."""
        known = self._counters.get(label)
        if known is not None:
            return known
        track = self._counters[label] = self._number()
        self._new.append(
            {
                "track_id": track,
                "kind": "counter",
                "device_type": device_type,
                "device_index": device_index,
                "process_id": self._process,
                "process_name": None,
                "thread_id": None,
                "thread_name": None,
                "label": label,
            }
        )
        return track

    def take(self) -> list[dict[str, Any]]:
        """New rows since the last call."""
        rows, self._new = self._new, []
        return rows


def _thread_name(native_id: int) -> str | None:
    for thread in threading.enumerate():
        if thread.native_id == native_id:
            return thread.name
    try:
        with open(f"/proc/self/task/{native_id}/comm", encoding="utf-8", errors="replace") as file:
            return file.read().strip() or None
    except OSError:
        return None
