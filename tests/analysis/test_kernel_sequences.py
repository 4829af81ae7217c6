"""Repeated kernel sequences: found whole, without overlap, nothing twice."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from explorer.analysis.kernel_sequences import FEWEST, LONGEST, repeated
from tests.analysis.hand_built import STREAM, event, line_id, make_run, site


def shown(text: str) -> list[tuple[str, int]]:
    codes = np.array([ord(c) for c in text], np.int64)
    return [(text[at[0] : at[0] + length], len(at)) for at, length in repeated(codes)]


def test_the_longest_sequence_that_comes_as_often() -> None:
    assert shown("xABCDyABCDzABCDw") == [("ABCD", 3)]


def test_a_loop_is_one_period() -> None:
    assert shown("ABC" * 10) == [("ABC", 10)]
    assert shown("AAAAAAAA") == []


def test_a_part_that_comes_more_often_is_its_own() -> None:
    assert shown("ABCD1ABCD2ABCD3" + "BC4BC5BC6BC7") == [("ABCD", 3), ("BC", 4)]


def test_nothing_repeats() -> None:
    assert shown("ABCDEFG") == []
    assert repeated(np.zeros(0, np.int64)) == []
    assert repeated(np.zeros(1, np.int64)) == []


@given(st.lists(st.integers(0, 3), max_size=80))
def test_occurrences_are_equal_and_apart(codes: list[int]) -> None:
    data = np.array(codes, np.int64)
    taken: set[int] = set()
    for at, length in repeated(data):
        assert len(at) >= FEWEST
        assert 2 <= length <= LONGEST
        assert len({tuple(data[p : p + length]) for p in at}) == 1
        places = [p + i for p in at.tolist() for i in range(length)]
        assert len(places) == len(set(places))
        assert not taken & set(places)
        taken |= set(places)


def test_times_and_lines(tmp_path: Path) -> None:
    rows, at = [], 0
    for layer in range(4):
        for offset, name in enumerate(("bias", "gelu")):
            rows.append(event(10 * layer + offset, "kernel", name, at, at + 10, STREAM, site_id=line_id(3)))
            at += 15
        rows.append(event(10 * layer + 5, "collective", "nccl", at, at + 100, STREAM))
        at += 120
    run = make_run(tmp_path, rows, sites=[site(3)])
    (row,) = run.view("kernel_sequences").rows()
    assert json.loads(row["names"]) == ["bias", "gelu"]
    assert (row["occurrences"], row["kernel_ns"], row["between_ns"], row["median_kernel_ns"]) == (
        4,
        80,
        20,
        10,
    )
    assert (row["first_event_id"], row["site_id"], row["device"]) == (0, line_id(3), "cuda:0")
