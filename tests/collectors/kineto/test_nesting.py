"""Parents and self time against a plain definition, on random overlapping intervals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from explorer.collectors.kineto import nesting

SPANS = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 25), st.integers(0, 12), st.integers(0, 2)),
    min_size=1,
    max_size=25,
)


@settings(max_examples=300, deadline=None)
@given(spans=SPANS, block=st.integers(1, 30), wanted=st.integers(0, 2**25))
def test_nesting_equals_its_definition(
    spans: list[tuple[int, int, int, int]], block: int, wanted: int
) -> None:
    track, start, duration, tie = (np.array(column) for column in zip(*spans))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nesting, "BLOCK_EVENTS", block)
        found = nesting.nest(track.astype(np.int32), start, duration, tie.astype(np.int8))
    end = start + duration
    order = found.order.tolist()
    assert order == sorted(range(len(spans)), key=lambda i: (track[i], start[i], -end[i], tie[i], i))
    for place, i in enumerate(order):
        around = [
            j
            for j in order[:place]
            if track[j] == track[i] and end[j] >= end[i] and (duration[i] > 0 or end[j] > end[i])
        ]
        assert found.parent[i] == (around[-1] if around else -1)
    for i in range(len(spans)):
        inside = {t for j in range(len(spans)) if found.parent[j] == i for t in range(start[j], end[j])}
        assert found.own[i] == duration[i] - len(inside)
    flags = np.array([wanted >> i & 1 for i in range(len(spans))], bool)
    for itself in (False, True):
        answer = nesting.nearest(found.parent, flags, itself=itself)
        for i in range(len(spans)):
            j = i if itself else int(found.parent[i])
            while j >= 0 and not flags[j]:
                j = int(found.parent[j])
            assert answer[i] == j
