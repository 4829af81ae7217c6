"""How numbers read in evidence."""

from __future__ import annotations

import pytest

from explorer.analysis.phrase import duration_text, fill, size_text, value_text


@pytest.mark.parametrize(
    ("duration_ns", "text"),
    [
        (0, "0 ns"), (850, "850 ns"), (999, "999 ns"), (1_000, "1 µs"), (12_345, "12.3 µs"), (999_600, "1 ms"), (999_400, "999 µs"),
        (3_050_000, "3.05 ms"), (999_960_000, "1 s"), (41_602_740_000, "41.6 s"), (-1_500, "-1.5 µs"),
    ],
)  # fmt: skip
def test_durations(duration_ns: int, text: str) -> None:
    assert duration_text(duration_ns) == text


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0 B"), (512, "512 B"), (1_050_000, "1 MiB"), (55.2e9, "51.4 GiB")]
)
def test_sizes(size: float, text: str) -> None:
    assert size_text(size) == text


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("idle_ns", 1_500, "1.5 µs"), ("moved_bytes", 2_000, "1.95 KiB"), ("idle_share", 0.1234, "12.3 %"), ("calls", 16.0, "16"),
        ("calls", 0.1111, "0.11"), ("calls", 1234.5, "1234"), ("name", "x", "x"), ("calls", None, "unknown"),
    ],
)  # fmt: skip
def test_values_follow_their_columns_name(name: str, value: object, text: str) -> None:
    assert value_text(name, value) == text


def test_fill_needs_its_columns() -> None:
    assert fill("{calls} calls take {time_ns}.", {"calls": 3, "time_ns": 2_000}) == "3 calls take 2 µs."
    with pytest.raises(KeyError):
        fill("{missing}", {})


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("getting {n} batches.", "getting 1 batch."),
        ("{n} graph breaks per step", "1 graph break per step"),
        ("{n} passes over", "1 pass over"),
        ("{n} ops per step take", "1 op per step take"),
        ("come up {n} times", "come up 1 time"),
        ("{n} of 3 launches", "1 of 3 launches"),
        ("rank {n} waits", "rank 1 waits"),
        ("takes 1 ms", "takes 1 ms"),
        ("2.1 steps and 11 steps", "2.1 steps and 11 steps"),
    ],
)
def test_one_of_a_thing_is_singular(template: str, text: str) -> None:
    assert fill(template, {"n": 1}) == text


def test_one_of_several_ies() -> None:
    assert fill("{n} copies and {n} entries per step", {"n": 1}) == "1 copy and 1 entry per step"
    assert fill("{n} copies", {"n": 2}) == "2 copies"
