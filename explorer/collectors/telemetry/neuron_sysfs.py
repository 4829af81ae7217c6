"""Neuron devices through sysfs, read only (writing clears counters): power and memory per core, without neuron-monitor.

Layout: public Neuron sysfs user guide. `stats/power/utilization` reads STATUS,epoch,min,max,avg in percent of the maximum and
is refreshed once a minute, so the same line is handed on once.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from explorer.collectors.telemetry.sampler import Reading

ROOT = "/sys/devices/virtual/neuron_device"
_DEVICE = re.compile(r"^neuron(\d+)$")
_CORE = re.compile(r"^neuron_core(\d+)$")


class NeuronSysfsSampler:
    """Every device under `root`."""

    name = "neuron_sysfs"

    def __init__(self, root: str = ROOT) -> None:
        self._root = root
        self._devices: list[tuple[int, str]] = []
        self._power: dict[int, str] = {}

    def start(self) -> bool:
        try:
            names = os.listdir(self._root)
        except OSError:
            return False
        found = [
            (int(m.group(1)), os.path.join(self._root, m.group(0))) for n in names if (m := _DEVICE.match(n))
        ]
        self._devices = sorted(found)
        return bool(self._devices)

    def stop(self) -> None:
        self._devices = []

    def sample(self, now_ns: int) -> Sequence[Reading]:
        found: list[Reading] = []
        for index, folder in self._devices:
            label = f"neuron device {index}"
            power = _read(os.path.join(folder, "stats", "power", "utilization"))
            if power is not None and power != self._power.get(index):
                self._power[index] = power
                parts = power.split(",")
                if len(parts) >= 5 and "INVALID" not in parts[0].upper():
                    for name, text in zip(("power_min", "power_max", "power"), parts[2:5]):
                        if (value := _number(text)) is not None:
                            found.append(Reading(now_ns, label, name, value, "percent", "neuron", index))
            for name in _folders(folder):
                if match := _CORE.match(name):
                    base = os.path.join(folder, name, "stats", "memory_usage", "device_mem")
                    core = int(match.group(1))
                    for kind in ("present", "peak"):
                        if (value := _number(_read(os.path.join(base, kind)))) is not None:
                            counter = "memory_used" if kind == "present" else "memory_peak"
                            found.append(
                                Reading(
                                    now_ns, f"{label} core {core}", counter, value, "bytes", "neuron", index
                                )
                            )
        return found


def _folders(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _read(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(4096).strip()
    except OSError:
        return None


def _number(text: str | None) -> float | None:
    try:
        return float(text) if text else None
    except ValueError:
        return None
