"""The devices a trace names (`deviceProperties`) and those its events ran on."""

from __future__ import annotations

import json
from typing import Any

from explorer.collectors.kineto.collecting import Collected

VENDORS = {"cuda": "nvidia", "hip": "amd", "xpu": "intel", "mtia": "meta", "npu": "huawei", "hpu": "intel"}


def device_rows(top_level: dict[str, Any], found: Collected) -> list[dict[str, Any]]:
    """Rows of `devices`: all listed ones, and those with events that the list leaves out."""
    result: dict[str, dict[str, Any]] = {}
    kind = found.device_type
    listed = top_level.get("deviceProperties")
    for entry in listed if isinstance(listed, list) else []:
        if not isinstance(entry, dict) or not isinstance(entry.get("id"), int):
            continue
        name = f"{kind}:{entry['id']}"
        memory, units = entry.get("totalGlobalMem"), entry.get("numSms")
        result[name] = {
            "device": name,
            "name": str(entry.get("name") or ""),
            "vendor": VENDORS.get(kind),
            "memory_bytes": memory if isinstance(memory, int) and 0 <= memory < 1 << 63 else None,
            "unit_count": units if isinstance(units, int) and 0 <= units < 1 << 31 else None,
            "attributes": json.dumps(
                {k: v for k, v in entry.items() if k not in ("id", "name", "totalGlobalMem", "numSms")},
                ensure_ascii=False,
            ),
        }
    for track in found.tracks:
        if track["kind"] == "stream":
            name = f"{track['device_type']}:{track['device_index']}"
            result.setdefault(name, {"device": name, "name": "", "vendor": VENDORS.get(track["device_type"])})
    return list(result.values())
