"""NVIDIA devices through NVML: utilisation, memory, power, temperature, clock, throttling."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

from explorer.collectors.telemetry.sampler import Reading

_IDLE_REASON = 0x1
"""nvmlClocksEventReasonGpuIdle: clocks are low because nothing runs, which is no throttling."""


class NvmlSampler:
    """Every NVIDIA device NVML shows. Values a device does not support are left out."""

    name = "nvml"

    def __init__(self) -> None:
        self._nvml: Any = None
        self._devices: list[tuple[int, Any]] = []

    def start(self) -> bool:
        try:
            import pynvml

            pynvml.nvmlInit()
        except Exception:
            return False
        self._nvml = pynvml
        try:
            count = pynvml.nvmlDeviceGetCount()
            self._devices = [(place, pynvml.nvmlDeviceGetHandleByIndex(place)) for place in range(count)]
        except Exception:
            self.stop()
            return False
        return bool(self._devices)

    def stop(self) -> None:
        if self._nvml is not None:
            with contextlib.suppress(Exception):
                self._nvml.nvmlShutdown()
        self._nvml, self._devices = None, []

    def sample(self, now_ns: int) -> Sequence[Reading]:
        nvml = self._nvml
        found: list[Reading] = []
        for index, handle in self._devices:

            def add(
                name: str, unit: str, read: Callable[[Any], float], index: int = index, handle: Any = handle
            ) -> None:
                try:
                    value = float(read(handle))
                except Exception:
                    return
                found.append(Reading(now_ns, f"cuda:{index}", name, value, unit, "cuda", index))

            add("utilization", "percent", lambda h: nvml.nvmlDeviceGetUtilizationRates(h).gpu)
            add("memory_utilization", "percent", lambda h: nvml.nvmlDeviceGetUtilizationRates(h).memory)
            add("memory_used", "bytes", lambda h: nvml.nvmlDeviceGetMemoryInfo(h).used)
            add("power", "watt", lambda h: nvml.nvmlDeviceGetPowerUsage(h) / 1000)
            add(
                "temperature",
                "celsius",
                lambda h: nvml.nvmlDeviceGetTemperature(h, nvml.NVML_TEMPERATURE_GPU),
            )
            add("sm_clock", "hertz", lambda h: nvml.nvmlDeviceGetClockInfo(h, nvml.NVML_CLOCK_SM) * 1e6)
            add("memory_clock", "hertz", lambda h: nvml.nvmlDeviceGetClockInfo(h, nvml.NVML_CLOCK_MEM) * 1e6)
            add(
                "throttled",
                "bool",
                lambda h: float(bool(nvml.nvmlDeviceGetCurrentClocksThrottleReasons(h) & ~_IDLE_REASON)),
            )
        return found
