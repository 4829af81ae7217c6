"""The formulas against numbers published for real profiles (public lab notes; numbers only)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from explorer.analysis.neuron import formulas
from explorer.analysis.run import open_run
from explorer.collectors.neuron.percent import FRACTION, PERCENT, percent_kind
from explorer.collectors.neuron.session_import import import_session
from tests.neuron_fixture.builder import ProfileBuilder


def test_ridge_of_one_trn2_core_to_the_last_digit() -> None:
    peak = formulas.peak_flops(128, 128, 2.4)
    assert peak == pytest.approx(78.6432e12, rel=1e-12)
    assert formulas.ridge(peak, 716e9) == pytest.approx(109.83687150837989, rel=1e-15)


def test_ridge_of_one_trn1_core() -> None:
    peak = formulas.peak_flops(128, 128, 2.8)
    assert peak == pytest.approx(91.7504e12, rel=1e-12)
    assert formulas.ridge(peak, 410e9) == pytest.approx(223.78, abs=0.005)


def test_intensity_of_a_published_graph() -> None:
    found = formulas.arithmetic_intensity(19_279_660_899_840, 339_695_382_912, 31_017_606_071, 11_101_448_403)
    assert found == pytest.approx(449.67689, abs=5e-6)


def test_percent_columns_of_a_published_graph_hold_fractions() -> None:
    summary = {
        "total_time": 3.132167956813,
        "tensor_engine_active_time": 0.565739726504,
        "tensor_engine_active_time_percent": 0.18062,
    }
    assert percent_kind(summary) == FRACTION
    assert percent_kind(summary | {"tensor_engine_active_time_percent": 18.062}) == PERCENT


def _utilization(folder: Path, summary: dict[str, float], ghz: float, bandwidth: float) -> dict[str, Any]:
    """The view neuron_utilization over a profile with these totals and one instruction."""
    builder = ProfileBuilder("published")
    builder.timed(
        "Instruction", 1_000_000, 100, id=1, engine="Tensor", opcode="MATMUL", bir_id="1", pcore_idx=0
    )
    builder.row("Summary", **summary)
    builder.row(
        "Metadata", profile_schema_version="7.4.0", tensor_engine_num_rows=128, tensor_engine_num_cols=128,
        tensor_engine_clock_freq=ghz, hbm_ddr_bandwidth=bandwidth,
    )  # fmt: skip
    builder.write(folder / "source")
    run = open_run(import_session(folder / "source", folder / "run").directory)
    return dict(run.sql("SELECT * FROM neuron_utilization").rows()[0])


def test_the_view_reproduces_a_published_trn2_graph(tmp_path: Path) -> None:
    row = _utilization(
        tmp_path,
        {
            "total_time": 3.132167956813, "hardware_flops": 19_279_660_899_840, "transpose_flops": 339_695_382_912,
            "hbm_read_bytes": 31_017_606_071, "hbm_write_bytes": 11_101_448_403,
        },
        2.4, 716e9,
    )  # fmt: skip
    assert row["intensity"] == pytest.approx(449.67689, abs=5e-6)
    # The profile holds the clock and the bandwidth as 32-bit floats.
    assert row["ridge"] == pytest.approx(109.83687150837989, rel=1e-6)
    assert (row["side"], row["mfu_max"]) == ("compute", 1.0)
    assert row["total_ns"] == round(1e9 * float(np.float32(3.132167956813)))
    assert row["hfu"] == pytest.approx(
        formulas.flops_utilization(19_279_660_899_840, 78.6432e12, 3.132167956813), rel=1e-6
    )


def test_the_view_reproduces_a_published_trn1_graph(tmp_path: Path) -> None:
    gib = 1 << 30
    read, write = round(3.995 * gib), round(2.702 * gib)
    row = _utilization(
        tmp_path,
        # Flops without transposes from the published intensity.
        {"total_time": 54.82e-3, "hardware_flops": round(73.09 * (read + write)), "hbm_read_bytes": read, "hbm_write_bytes": write},
        2.8, 410e9,
    )  # fmt: skip
    assert row["mbu"] == pytest.approx(0.3199, abs=2e-4)
    assert row["mfu_max"] == pytest.approx(0.3266, abs=5e-5)
    assert row["side"] == "memory"
    # The published MFU (without transposes) follows from intensity, bytes, peak and time.
    assert row["mfu_instructions"] == pytest.approx(0.1045, abs=1e-4)


def test_most_achievable_utilization_of_a_published_graph() -> None:
    assert formulas.max_achievable_utilization(73.09, 223.78) == pytest.approx(0.3266, abs=5e-5)
    assert formulas.max_achievable_utilization(500.0, 223.78) == 1.0


def test_bandwidth_utilization_of_a_published_graph() -> None:
    gib = 1 << 30
    found = formulas.bandwidth_utilization(3.995 * gib, 2.702 * gib, 410e9, 54.82e-3)
    assert found == pytest.approx(0.3199, abs=2e-4)


def test_unknown_divisors_give_none() -> None:
    assert formulas.ridge(1e12, None) is None
    assert formulas.flops_utilization(1e12, None, 1.0) is None
    assert formulas.arithmetic_intensity(1, 0, 0, 0) is None
