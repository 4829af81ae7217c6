"""The `devices` row of a NeuronCore, from the profile's own Metadata: peaks are measured facts of the profile, not a table here."""

from __future__ import annotations

import json
from typing import Any

from explorer.collectors.neuron.tables import ProfileTables


def tensor_peak_flops(rows: float, columns: float, clock_ghz: float) -> float:
    """Peak BF16 rate of the Tensor engine in flop/s: rows x columns x 2 x clock (public schema reference, mfu fields)."""
    return rows * columns * 2 * clock_ghz * 1e9


def device_row(tables: ProfileTables, device_index: int) -> dict[str, Any]:
    """One row of `devices`. With several physical cores the peaks are the logical core's: the sum of both."""
    rows = tables.rows("SELECT * FROM Metadata LIMIT 1")
    facts = {k: v for k, v in (rows[0] if rows else {}).items() if v is not None}
    cores = facts.get("num_physical_cores") or 1
    peak = None
    if all(facts.get(f"tensor_engine_{name}") for name in ("num_rows", "num_cols", "clock_freq")):
        peak = cores * tensor_peak_flops(
            facts["tensor_engine_num_rows"],
            facts["tensor_engine_num_cols"],
            facts["tensor_engine_clock_freq"],
        )
    bandwidth = facts.get("hbm_ddr_bandwidth")
    return {
        "device": f"neuron:{device_index}",
        "name": f"NeuronCore {device_index}"
        + (f" ({facts['instance_type']})" if "instance_type" in facts else ""),
        "vendor": "aws",
        "peak_flops": json.dumps({"bfloat16": peak, "float16": peak, "float32": peak / 4}) if peak else None,
        "memory_bandwidth": bandwidth,
        "unit_count": cores,
        "attributes": json.dumps(facts, default=str),
    }
