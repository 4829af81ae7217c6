"""Verdicts: equal runs are equal, real changes are found, few steps decide nothing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from explorer.analysis.diff.noise import verdict


def steps(seed: int, mean: float, spread: float, count: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(mean, spread, count).astype(np.int64)


def test_false_alarms_on_equal_programs_are_rare() -> None:
    answers = [verdict(steps(2 * i, 1e6, 5e4, 40), steps(2 * i + 1, 1e6, 5e4, 40)).answer for i in range(100)]
    assert answers.count("no_significant_change") >= 93


@pytest.mark.parametrize(("factor", "answer"), [(1.1, "slower"), (0.9, "faster")])
def test_a_change_of_ten_percent_is_found(factor: float, answer: str) -> None:
    answers = [
        verdict(steps(i, 1e6, 5e4, 40), steps(1000 + i, factor * 1e6, 5e4, 40)).answer for i in range(40)
    ]
    assert answers == [answer] * 40


def test_a_certain_change_below_one_percent_is_none() -> None:
    result = verdict(np.full(50, 1_000_000), np.full(50, 1_005_000))
    assert (result.answer, result.change) == ("no_significant_change", 0.005)


def test_few_steps_decide_nothing() -> None:
    result = verdict(np.array([100, 100, 100, 100]), np.array([200] * 10))
    assert (result.answer, result.change, result.steps_before) == ("undecided", 1.0, 4)
    assert verdict(np.array([], np.int64), np.array([], np.int64)).answer == "undecided"


@given(
    st.lists(st.integers(1, 10**9), min_size=5, max_size=40),
    st.lists(st.integers(1, 10**9), min_size=5, max_size=40),
)
def test_the_interval_is_ordered_and_repeatable(a: list[int], b: list[int]) -> None:
    first, second = verdict(np.array(a), np.array(b)), verdict(np.array(a), np.array(b))
    assert first == second
    assert first.low <= first.high


def test_where_nothing_can_be_compared_no_number_is_given() -> None:
    none, some = np.array([], np.int64), np.array([100] * 10)
    for before, after, where in (
        (none, some, "the run before"),
        (some, none, "the run after"),
        (none, none, "either run"),
    ):
        result = verdict(before, after)
        assert (result.answer, result.change, result.low, result.high) == ("undecided", None, None, None)
        assert result.reason == f"no complete step in {where} to compare"
        assert result.change_text == ""
        assert result.basis_text == f"{len(before)} and {len(after)} steps"


def test_few_steps_have_a_change_and_no_interval() -> None:
    result = verdict(np.array([100] * 4), np.array([200] * 10))
    assert (result.low, result.high) == (None, None)
    assert (result.change_text, result.basis_text) == ("+100.0%", "4 and 10 steps")
    assert result.reason == "fewer than 5 complete steps on one side"
