"""Counter rows: one value per series."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pyarrow as pa

from explorer.collectors.kineto.collecting import Collected

_UNIT = re.compile(r"\(([^()]+)\)\s*$")
_UNITS = {"mb/s": "MB/s", "mhz": "MHz", "%": "percent", "kb": "KB", "bytes": "bytes"}


def counter_rows(rows: pa.Table, found: Collected) -> tuple[int, list[dict[str, Any]]]:
    """The number of source rows, and the rows of `counters`. A value that is no number is null."""
    which = found.counter_rows
    take = pa.array(which)
    names = rows.column("name").take(take).to_pylist()
    texts = rows.column("args").take(take).to_pylist()
    result = []
    for row, name, text in zip(which.tolist(), names, texts):
        try:
            series = msgspec.json.decode(text) if text else {}
        except (msgspec.DecodeError, RecursionError):
            series = {"value": None}
        for key, value in (series or {"value": None}).items():
            unit = _UNIT.search(key)
            bare = key in ("value", name)
            result.append(
                {
                    "track_id": int(found.row_track[row]),
                    "timestamp_ns": int(found.row_time[row]),
                    "name": (name or "counter") if bare else f"{name}/{key}" if name else key,
                    "value": _number(value),
                    "unit": unit.group(1) if unit else _UNITS.get(key.lower()),
                }
            )
    return len(which), result


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or value is None:
        return None
    try:
        return float(value)
    except (TypeError, ValueError):
        return None
