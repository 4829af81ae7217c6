"""Begins and ends find each other in the same way, compiled and not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from explorer.collectors.kineto import pairing
from explorer.collectors.kineto.compiled import compiled_sweep

ROWS = st.lists(st.tuples(st.integers(0, 2), st.integers(-1, 2), st.booleans()), min_size=3, max_size=40)


@pytest.mark.parametrize("build", ["compiled", "lists"])
@settings(max_examples=300)
@given(rows=ROWS)
def test_pairs_equal_their_definition(build: str, rows: list[tuple[int, int, bool]]) -> None:
    if build == "compiled" and compiled_sweep() is None:
        pytest.skip("this installation could not compile it")
    key, name, begins = (np.array(column) for column in zip(*rows))
    with pytest.MonkeyPatch.context() as patch:
        if build == "lists":
            patch.setattr(pairing, "compiled_sweep", lambda: None)
        partner = pairing.pair(key.astype(np.int32), name.astype(np.int32), begins).tolist()
    expected = [-1] * len(rows)
    for place, (track, word, begin) in enumerate(rows):
        if begin:
            continue
        open_ = [i for i in range(place) if rows[i][0] == track and rows[i][2] and expected[i] < 0]
        fitting = [i for i in open_ if word < 0 or rows[i][1] == word]
        if fitting:
            expected[fitting[-1]], expected[place] = place, fitting[-1]
    assert partner == expected


def test_an_end_without_a_name_closes_the_innermost_and_one_with_a_name_that_of_its_name() -> None:
    name = np.array([5, 6, 7, 5, -1, -1, 9], np.int32)
    begins = np.array([True, True, True, False, False, False, False])
    assert pairing.pair(np.zeros(7, np.int32), name, begins).tolist() == [3, 5, 4, 0, 2, 1, -1]


def test_compiled_pairing_refuses_keys_outside_the_rows() -> None:
    compiled = compiled_sweep()
    if compiled is None:
        pytest.skip("this installation could not compile it")
    for keys in ([0, 3, 0], [-1, 0, 0]):
        with pytest.raises(ValueError, match="outside the rows"):
            compiled.pair(
                np.array(keys, np.int32), np.zeros(3, np.int32), np.ones(3, bool), np.empty(3, np.int32)
            )
