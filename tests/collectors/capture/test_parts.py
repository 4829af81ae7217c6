"""Parts of the capture on their own: nesting, metadata, secrets."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from explorer.collectors.capture.metadata import parse_metadata
from explorer.collectors.capture.nesting import parents_of, self_times
from explorer.collectors.capture.secrets import mask_secrets

spans = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 30), st.integers(0, 12)), max_size=25)


def expected_parents(rows: list[tuple[int, int, int]]) -> list[int]:
    """The latest earlier row of the track that is still open at the start and ends no earlier."""
    result = []
    for at, (track, start, end) in enumerate(rows):
        parent = -1
        for before, (other, begin, finish) in enumerate(rows[:at]):
            still_open = finish > start or (begin == finish == start)
            if other == track and still_open and finish >= end:
                parent = before
        result.append(parent)
    return result


@given(spans)
def test_parents_are_the_innermost_enclosing_events(given_spans: list[tuple[int, int, int]]) -> None:
    rows = sorted(
        ((track, start, start + length) for track, start, length in given_spans),
        key=lambda r: (r[0], r[1], -r[2]),
    )
    track, start, end = (np.array([row[i] for row in rows], dtype=np.int64) for i in range(3))
    assert parents_of(track, start, end).tolist() == expected_parents(rows)


def test_self_time_is_what_the_children_leave() -> None:
    starts = np.array([0, 0, 5, 6], dtype=np.int64)
    durations = np.array([10, 4, 3, 1], dtype=np.int64)
    parents = np.array([-1, 0, 0, 2], dtype=np.int64)
    assert self_times(starts, durations, parents).tolist() == [3, 4, 2, 1]


def test_children_that_overlap_cover_their_time_once() -> None:
    starts = np.array([0, 1, 2, 3, 8, 20, 20], dtype=np.int64)
    durations = np.array([10, 5, 1, 5, 1, 9, 4], dtype=np.int64)
    parents = np.array([-1, 0, 0, 0, 0, -1, 5], dtype=np.int64)
    # 1 to 8 and 8 to 9 are covered.
    assert self_times(starts, durations, parents).tolist() == [2, 5, 1, 5, 1, 5, 4]


def test_metadata_in_any_order_and_broken() -> None:
    parsed = parse_metadata(
        [
            '"Fwd thread id": 1, "Ev Idx": 4, "Sequence number": 17',
            '"Input Dims": [[2, 3], []], "Record function id": 0, "Input type": ["float", "Scalar"], "Extra": "x"',
            "",
            '"broken": [1',
        ]
    )
    assert parsed.sequences.tolist() == [17, -1, -1, -1]
    assert parsed.forward_threads.tolist() == [1, 0, 0, 0]
    assert parsed.shapes == [None, "[[2,3],[]]", None, None]
    assert parsed.dtypes == [None, '["float","Scalar"]', None, None]
    assert parsed.attributes == [None, '{"Extra":"x"}', None, '{"metadata": "\\"broken\\": [1"}']


@pytest.mark.parametrize(
    ("command", "masked"),
    [
        (["train.py", "--lr", "0.1"], ["train.py", "--lr", "0.1"]),
        (["--api-key", "abc", "x"], ["--api-key", "***", "x"]),
        (["--hf_token=abc"], ["--hf_token=***"]),
        (["PASSWORD=abc"], ["PASSWORD=***"]),
        (["--secret", "--next"], ["--secret", "--next"]),
        (["hf_abcdefghijklmnopqrstuv"], ["***"]),
        (["s3://user:pass@host/path"], ["s3://user:***@host/path"]),
        (["https://host/file?X-Signature=abc&size=3"], ["https://host/file?X-Signature=***&size=3"]),
    ],
)
def test_secrets_are_masked(command: list[str], masked: list[str]) -> None:
    assert mask_secrets(command) == masked
