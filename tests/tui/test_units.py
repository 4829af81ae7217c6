from __future__ import annotations

import math

import pytest

from explorer.tui import units


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (950, "950 ns"),
        (999.7, "1.00 µs"),
        (12_345, "12.3 µs"),
        (999_950, "1.00 ms"),
        (20_000_000, "20.0 ms"),
        (1_234_000_000, "1.23 s"),
        (3_600_000_000_000, "60 min 00 s"),
        (-4_290_000, "-4.29 ms"),
        (None, "–"),
        (math.nan, "–"),
    ],
)
def test_durations(value: float | None, text: str) -> None:
    assert units.duration(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0.0, "0 %"), (0.0003, "<0.1 %"), (0.123, "12.3 %"), (1.0, "100 %"), (None, "–")]
)
def test_shares(value: float | None, text: str) -> None:
    assert units.share(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.00 KiB"), (1 << 30, "1.00 GiB"), (-20 << 20, "-20.0 MiB")],
)
def test_sizes(value: int, text: str) -> None:
    assert units.size(value) == text


def test_counts_and_work() -> None:
    assert units.count(1234567) == "1,234,567"
    assert units.count(12_345_678) == "12.3 M"
    assert units.work(2_000_000_000) == "2.00 GFLOP"


def test_bars_fill_in_eighths() -> None:
    assert units.bar(0.5, 4) == "██  "
    assert units.bar(1.0, 4) == "████"
    assert units.bar(1 / 32, 4) == "▏   "
    assert units.bar(1e-9, 4) == "    "
    assert units.bar(0.0, 4) == units.bar(None, 4) == "    "
    assert units.bar(7.0, 4) == "████"


def test_a_sparkline_spreads_over_its_width() -> None:
    assert units.sparkline([1.0, 2.0], 4) == "▄▄▇▇"
    assert units.sparkline([None, 7.0], 2) == " ▇"
    assert units.sparkline([], 3) == "   "
    assert len(units.sparkline([float(i) for i in range(100)], 10)) == 10
