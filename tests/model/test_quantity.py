"""Quantities as text: monotone, three digits, never a unit too small."""

import re

from hypothesis import given
from hypothesis import strategies as st

from explorer.model.quantity import duration_text, size_text, three_digits


@given(st.integers(0, 10**18))
def test_a_duration_reads_back_within_its_digits(value: int) -> None:
    text = duration_text(value)
    minutes = re.fullmatch(r"(?:([\d,]+) h )?(\d+) min(?: (\d+) s)?", text)
    if minutes:
        hours, minute, second = (int((part or "0").replace(",", "")) for part in minutes.groups())
        assert abs((hours * 60 + minute) * 60 + second - value / 1e9) <= 60
        return
    number, _, unit = text.partition(" ")
    factor = {"": 1, "ns": 1, "µs": 10**3, "ms": 10**6, "s": 10**9}[unit]
    assert abs(float(number) * factor - value) <= max(0.0051 * value, 0.5)
    assert float(number) < 1000


@given(st.integers(0, 2**62))
def test_a_size_reads_back_within_its_digits(value: int) -> None:
    number, unit = size_text(value).split(" ")
    factor = 1024 ** ("B", "KiB", "MiB", "GiB", "TiB", "PiB").index(unit)
    assert abs(float(number.replace(",", "")) * factor - value) <= max(0.0051 * value, 0.5)


def test_signs_zeros_and_trimming() -> None:
    assert [duration_text(v) for v in (0, -1500, 999_600, 125_000_000_000)] == [
        "0",
        "-1.50 µs",
        "1.00 ms",
        "2 min 05 s",
    ]
    assert duration_text(1_200_000_000, trim=True) == "1.2 s"
    assert [size_text(v) for v in (0, 1023, 1024, -2048)] == ["0 B", "1023 B", "1.00 KiB", "-2.00 KiB"]
    assert [three_digits(v) for v in (1.234, 12.34, 123.4, 1234.0)] == ["1.23", "12.3", "123", "1,234"]
