"""The formulas against numbers published for real profiles (public lab notes; numbers only)."""

from __future__ import annotations

import pytest

from explorer.analysis.neuron import formulas


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


def test_active_share_of_a_published_graph() -> None:
    assert pytest.approx(0.18062, abs=1e-5) == 0.565739726504 / 3.132167956813


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
