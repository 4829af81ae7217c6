"""Every column of an answer keeps its values, whatever the columns are named."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from explorer.analysis.column_names import distinct_names


@given(st.lists(st.sampled_from(["a", "a_1", "a_2", "b", "", "_1"]), max_size=12))
def test_names_are_distinct_and_first_ones_stay(names: list[str]) -> None:
    distinct = distinct_names(names)
    assert len(set(distinct)) == len(names)
    for place, name in enumerate(names):
        if name not in names[:place]:
            assert distinct[place] == name
        else:
            assert distinct[place].startswith(f"{name}_")


def test_a_number_that_is_taken_is_passed_over() -> None:
    assert distinct_names(["a", "a", "a_1", "b"]) == ["a", "a_2", "a_1", "b"]
