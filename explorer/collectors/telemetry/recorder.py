"""Samples in the background of a capture: one thread, a fixed period, rows kept until they are taken."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from explorer.collectors.hidden_thread import HiddenThread
from explorer.collectors.telemetry.sampler import Reading, Sampler

PERIOD_S = 0.5
MAX_READINGS = 500_000
"""Readings kept between two takes, about 60 MB; beyond it new ones are counted and dropped."""


def machine_samplers() -> list[Sampler]:
    """Every sampler this program knows; those without a source end at `start`.

    Devices are sampled by the first rank of a machine only: one neuron-monitor serves them all.
    """
    from explorer.collectors.telemetry.host import HostSampler
    from explorer.collectors.telemetry.neuron_monitor import NeuronMonitorSampler
    from explorer.collectors.telemetry.neuron_sysfs import NeuronSysfsSampler
    from explorer.collectors.telemetry.nvml import NvmlSampler

    if os.environ.get("LOCAL_RANK", "0") != "0":
        return [HostSampler()]
    return [HostSampler(), NvmlSampler(), NeuronMonitorSampler(), NeuronSysfsSampler()]


class TelemetryRecorder:
    """Runs samplers. A sampler that raises is ended and named in `failed`; the program never sees it.

    Args:
        samplers: None: those of this machine.
        period_s: seconds between samples.
        clock: current Unix time in ns, for tests.
    """

    def __init__(
        self,
        samplers: Sequence[Sampler] | None = None,
        *,
        period_s: float = PERIOD_S,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        self._wanted = list(samplers) if samplers is not None else None
        self._period_s = period_s
        self._clock = clock
        self._active: list[Sampler] = []
        self._rows: list[Reading] = []
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread: HiddenThread | None = None
        self.failed: dict[str, str] = {}
        self.dropped = 0
        self.cost_ns = 0
        """Time spent sampling, on the sampling thread"""

    def start(self) -> list[str]:
        """Start what this machine has; returns the names of the samplers that run."""
        wanted = self._wanted if self._wanted is not None else machine_samplers()
        for sampler in wanted:
            try:
                if sampler.start():
                    self._active.append(sampler)
            except Exception as error:
                self._fail(sampler, error)
        if self._active and self._thread is None:
            self._ended.clear()
            self._thread = HiddenThread(self._run)
        return [sampler.name for sampler in self._active]

    def stop(self) -> None:
        """Take a last sample and release everything. Safe to call twice."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join(timeout_seconds=5)
            self._thread = None
        self.sample()
        for sampler in self._active:
            try:
                sampler.stop()
            except Exception as error:
                self._fail(sampler, error)
        self._active = []

    def forget(self) -> None:
        """In a forked child, where the thread does not exist: drop everything, stop nothing that the parent still uses."""
        self._active, self._rows, self._thread = [], [], None
        self._lock = threading.Lock()

    def sample(self) -> None:
        """Ask every sampler once."""
        begin = time.perf_counter_ns()
        for sampler in list(self._active):
            try:
                found = sampler.sample(self._clock())
            except Exception as error:
                self._fail(sampler, error)
                self._active.remove(sampler)
                continue
            with self._lock:
                room = max(0, MAX_READINGS - len(self._rows))
                self._rows += found[:room]
                self.dropped += max(0, len(found) - room)
        self.cost_ns += time.perf_counter_ns() - begin

    def take(self) -> list[Reading]:
        """Readings since the last call."""
        with self._lock:
            rows, self._rows = self._rows, []
        return rows

    def _run(self) -> None:
        while not self._ended.wait(self._period_s):
            self.sample()

    def _fail(self, sampler: Sampler, error: Exception) -> None:
        self.failed[sampler.name] = f"{type(error).__name__}: {error}"


def counter_columns(readings: Sequence[Reading], track: Callable[[Reading], int]) -> dict[str, Any]:
    """Readings as columns of `counters`; `track` gives the number of a reading's track."""
    return {
        "track_id": [track(reading) for reading in readings],
        "timestamp_ns": [reading.timestamp_ns for reading in readings],
        "name": [reading.name for reading in readings],
        "value": [reading.value for reading in readings],
        "unit": [reading.unit for reading in readings],
    }
