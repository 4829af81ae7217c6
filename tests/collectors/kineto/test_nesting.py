"""Parents and self time against a plain definition, on random overlapping intervals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from explorer.collectors.kineto import nesting
from explorer.collectors.kineto.compiled import compiled_sweep

SPANS = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 25), st.integers(0, 12), st.integers(0, 2)),
    min_size=1,
    max_size=25,
)


@pytest.mark.parametrize("build", ["compiled", "numpy"])
@settings(max_examples=300)
@given(spans=SPANS, block=st.integers(1, 30), wanted=st.integers(0, 2**25), threads=st.sampled_from((1, 2)))
def test_nesting_equals_its_definition(
    build: str, spans: list[tuple[int, int, int, int]], block: int, wanted: int, threads: int
) -> None:
    if build == "compiled" and compiled_sweep() is None:
        pytest.skip("this installation could not compile it")
    track, start, duration, tie = (np.array(column) for column in zip(*spans))
    end = start + duration
    flags = np.array([wanted >> i & 1 for i in range(len(spans))], bool)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nesting, "BLOCK_EVENTS", block)
        if build == "numpy":
            patch.setattr(nesting, "compiled_sweep", lambda: None)
        found = nesting.nest(track.astype(np.int32), start, duration, tie.astype(np.int8), threads)
        nearest = {itself: nesting.nearest(found.parent, flags, itself=itself) for itself in (False, True)}
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
    for itself, answer in nearest.items():
        for i in range(len(spans)):
            j = i if itself else int(found.parent[i])
            while j >= 0 and not flags[j]:
                j = int(found.parent[j])
            assert answer[i] == j


def test_compiled_nesting_refuses_what_does_not_fit() -> None:
    compiled = compiled_sweep()
    if compiled is None:
        pytest.skip("this installation could not compile it")
    numbers, codes = np.arange(3), np.empty(3, np.int32)
    for start, parent in ((numbers[:2], codes), (numbers.astype(np.int32), codes), (numbers, codes[:2])):
        with pytest.raises(ValueError, match="differ in length"):
            compiled.nest(start, numbers, parent, np.empty(3, np.int64))
    for parents in ([1, 2, 0], [0, -1, -1], [3, -1, -1], [-2, -1, -1]):
        with pytest.raises(ValueError, match="outside the events, or encloses itself"):
            compiled.nearest(np.array(parents, np.int32), np.zeros(3, bool), codes)
