"""Counter rows: one value per series."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

_UNIT = re.compile(r"\(([^()]+)\)\s*$")
_UNITS = {"mhz": "MHz", "kb": "KB", "bytes": "bytes"}


def counter_rows(
    rows: pa.Table, which: npt.NDArray[np.int64], track: npt.NDArray[np.int32], base_ns: int
) -> dict[str, list[Any]]:
    """Columns of `counters` for the counter rows `which`. A value that is no number is null."""
    take = pa.array(which)
    names = rows.column("name").take(take).to_pylist()
    texts = rows.column("args").take(take).to_pylist()
    times = rows.column("ts").take(take).to_pylist()
    result: dict[str, list[Any]] = {
        name: [] for name in ("track_id", "timestamp_ns", "name", "value", "unit")
    }
    for row, name, text, time in zip(which.tolist(), names, texts, times):
        try:
            series = msgspec.json.decode(text) if text else None
        except (msgspec.DecodeError, RecursionError):
            series = None
        if not isinstance(series, dict) or not series:
            series = {"value": None}
        for key, value in series.items():
            unit = _UNIT.search(key)
            bare = key in ("value", name)
            result["track_id"].append(int(track[row]))
            result["timestamp_ns"].append(time + base_ns)
            result["name"].append((name or "counter") if bare else f"{name}/{key}" if name else key)
            result["value"].append(_number(value))
            result["unit"].append(unit.group(1) if unit else _UNITS.get(key.lower()))
    return result


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or value is None:
        return None
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None
