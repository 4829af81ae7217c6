"""What devices can do at most: published peaks by device name, from the data file device_peaks.json."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True, slots=True)
class Peak:
    """Peaks of one device: dense operations per second by dtype ('vector': float32 outside matrix units), bytes per second."""

    name: str
    vendor: str
    flops: dict[str, float]
    memory_bandwidth: float
    source: str


@cache
def all_peaks() -> tuple[tuple[re.Pattern[str], Peak], ...]:
    """Every known device with the pattern its name is found by, most special first."""
    document = json.loads((files("explorer.model") / "device_peaks.json").read_text())
    return tuple(
        (
            re.compile(entry["match"]),
            Peak(entry["name"], entry["vendor"], entry["flops"], entry["memory_bandwidth"], entry["source"]),
        )
        for entry in document["devices"]
    )


def find_peak(device_name: str) -> Peak | None:
    """Peaks of the device of that name, or None where it is not known."""
    return next((peak for pattern, peak in all_peaks() if pattern.search(device_name)), None)
