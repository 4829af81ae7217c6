"""Numbers as people read them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from explorer.cli import units


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (0, "0"),
        (0.4, "0 ns"),
        (950, "950 ns"),
        (999.6, "1.00 µs"),
        (12_345, "12.3 µs"),
        (999_499, "999 µs"),
        (999_500, "1.00 ms"),
        (4_560_000, "4.56 ms"),
        (1_200_000_000, "1.20 s"),
        (-4_560_000, "-4.56 ms"),
        (125_000_000_000, "2 min 05 s"),
        (3 * 3600 * 10**9, "3 h 00 min"),
    ],
)
def test_duration(nanoseconds: float, text: str) -> None:
    assert units.duration(nanoseconds) == text


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (1023, "1023 B"), (1536, "1.50 KiB"), (2 * 2**30, "2.00 GiB")]
)
def test_size(count: int, text: str) -> None:
    assert units.size(count) == text


@pytest.mark.parametrize(
    ("per_second", "text"),
    [
        (0, "0"),
        (12, "12.0 FLOP/s"),
        (4_640_000_000, "4.64 GFLOP/s"),
        (999_600_000, "1.00 GFLOP/s"),
        (1.12e8, "112 MFLOP/s"),
        (3.12e14, "312 TFLOP/s"),
        (2.5e15, "2.50 PFLOP/s"),
    ],
)
def test_rates_have_the_prefix_that_fits(per_second: float, text: str) -> None:
    assert units.flop_rate(per_second) == text


def test_bytes_per_second() -> None:
    assert (units.byte_rate(3.35e12), units.byte_rate(892e6)) == ("3.35 TB/s", "892 MB/s")


def test_number_and_share() -> None:
    assert units.number(1234567) == "1,234,567"
    assert units.number(0.12345) == "0.1235"
    assert units.share(0.1234) == "12.3 %"


@given(st.integers(min_value=0, max_value=10**18))
def test_duration_is_short_and_has_a_unit(nanoseconds: int) -> None:
    text = units.duration(nanoseconds)
    assert text == "0" or text.split()[-1] in ("ns", "µs", "ms", "s", "min")
    assert "e" not in text
    assert nanoseconds > 3600 * 10**12 or len(text) <= 15


@given(st.text(max_size=40), st.integers(min_value=1, max_value=20))
def test_cut_text_fits_and_keeps_the_right_end(text: str, cells: int) -> None:
    text = units.one_line(text)
    start, end = units.start_of(text, cells), units.end_of(text, cells)
    assert units.width(start) <= cells
    assert units.width(end) <= cells
    assert text.startswith(start.rstrip(units.ELLIPSIS)) or units.ELLIPSIS in text
    assert text.endswith(end.lstrip(units.ELLIPSIS)) or units.ELLIPSIS in text


def test_names_cannot_move_the_cursor() -> None:
    assert units.one_line("a\x1b[2Jb\r\nc") == "a [2Jb  c"
