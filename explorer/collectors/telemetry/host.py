"""Host values through psutil: CPU time of the process and of those it started, memory, threads and file I/O; the machine's CPU, memory, disk, network."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Any

from explorer.collectors.telemetry.child_processes import children_seconds
from explorer.collectors.telemetry.sampler import Reading


class HostSampler:
    """psutil on this process and this machine. Rates need two samples, so the first one has none."""

    name = "host"

    def __init__(self) -> None:
        self._process: Any = None
        self._before: dict[str, tuple[float, float]] = {}

    def start(self) -> bool:
        try:
            import psutil
        except ImportError:
            return False
        self._process = psutil.Process(os.getpid())
        return True

    def stop(self) -> None:
        self._process = None

    def sample(self, now_ns: int) -> Sequence[Reading]:
        import psutil

        process = self._process
        if process is None:
            return []
        found: list[Reading] = []

        def add(name: str, value: float, unit: str) -> None:
            found.append(Reading(now_ns, "host", name, float(value), unit))

        def rate(name: str, total: float, unit: str, over: float | None = None) -> None:
            # The clock is read beside the value: on a loaded machine this thread may have waited since `now_ns`.
            base = time.monotonic() if over is None else over
            before = self._before.get(name)
            self._before[name] = (base, total)
            if before is not None and base > before[0]:
                # A process that nobody waited for takes its time with it.
                add(name, max(0.0, total - before[1]) / (base - before[0]), unit)

        with process.oneshot():
            times = process.cpu_times()
            # Seconds of CPU time per second: 100 per busy core.
            rate("process.cpu", 100 * (times.user + times.system), "percent")
            if (below := children_seconds(process.pid)) is not None:
                rate("children.cpu", 100 * below, "percent")
            add("process.memory", process.memory_info().rss, "bytes")
            add("process.threads", process.num_threads(), "count")
            try:
                switches = process.num_ctx_switches()
                rate("process.involuntary_switches", switches.involuntary, "count/s")
            except (psutil.Error, NotImplementedError, OSError):
                pass
            try:
                moved = process.io_counters()
                rate("process.read", moved.read_bytes, "bytes/s")
                rate("process.written", moved.write_bytes, "bytes/s")
            except (psutil.Error, AttributeError, NotImplementedError, OSError):
                pass
        busy = psutil.cpu_times()
        idle = busy.idle + getattr(busy, "iowait", 0.0)
        total = sum(busy[:8])
        rate("machine.cpu", 100 * (total - idle), "percent", over=total)
        memory = psutil.virtual_memory()
        add("machine.memory_available", memory.available, "bytes")
        add("machine.memory_used", memory.percent, "percent")
        try:
            network = psutil.net_io_counters()
            if network is not None:
                rate("machine.received", network.bytes_recv, "bytes/s")
                rate("machine.sent", network.bytes_sent, "bytes/s")
        except (psutil.Error, OSError):
            pass
        return found
