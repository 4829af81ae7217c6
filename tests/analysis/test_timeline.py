"""The timeline against a slow and obvious computation of the same."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from explorer.analysis.run import Run, open_run
from explorer.analysis.timeline import Lane, _lane, load_timeline
from explorer.analysis.timeline_lanes import lane_order
from explorer.store.writer import RunWriter
from tests.tui.sample_run import START, STEP_NS, write_sample_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return open_run(write_sample_run(tmp_path_factory.mktemp("timeline") / "run"))


@st.composite
def lanes(draw: st.DrawFn) -> Lane:
    """A lane of events that do not overlap, some of length zero, some touching."""
    gaps = draw(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 80)), min_size=1, max_size=60))
    starts, durations, now = [], [], draw(st.integers(0, 100))
    for gap, length in gaps:
        now += gap
        starts.append(now)
        durations.append(length)
        now += length
    return _lane(np.array(starts, np.int64), np.array(durations, np.int64), 0, len(starts), 0)


@settings(max_examples=200)
@given(lanes(), st.integers(-50, 3000), st.integers(1, 4000), st.integers(1, 40))
def test_a_window_is_exact(lane: Lane, start: int, span: int, cells: int) -> None:
    window = lane.window(start, start + span, cells)
    edges = [start + span * cell // cells for cell in range(cells + 1)]
    events = list(zip(lane.start_ns.tolist(), lane.duration_ns.tolist()))
    for cell, (low, high) in enumerate(pairwise(edges)):
        busy = sum(max(0, min(high, s + d) - max(low, s)) for s, d in events)
        width = max(high - low, 1)
        assert window.busy[cell] == pytest.approx(min(busy / width, 1.0)), (cell, low, high)
        starting = [i for i, (s, _) in enumerate(events) if low <= s < high]
        assert window.count[cell] == len(starting)
        covering = [i for i, (s, d) in enumerate(events) if s < high and s + d > low]
        if starting or covering:
            assert window.row[cell] in {*starting, *covering}
        else:
            assert window.row[cell] == -1


@settings(max_examples=50)
@given(st.lists(st.integers(1, 1000), min_size=200, max_size=400), st.integers(1, 3))
def test_far_out_the_longest_event_stands_for_many(lengths: list[int], cells: int) -> None:
    starts = np.cumsum([0, *lengths[:-1]]).astype(np.int64)
    lane = _lane(starts, np.array(lengths, np.int64), 0, len(lengths), 0)
    window = lane.window(0, int(starts[-1]) + lengths[-1], cells)
    for cell in range(cells):
        # Within one block of events of the true longest: only whole blocks are compared far out.
        low, high = sum(lengths) * cell // cells, sum(lengths) * (cell + 1) // cells
        inside = [n for n, s in zip(lengths, starts.tolist()) if low <= s and s + n <= high]
        shown = lengths[int(window.row[cell])]
        assert shown >= sorted(inside)[max(0, len(inside) - 2 * 32 - 1)]


def test_far_windows_use_the_blocks_and_find_the_longest() -> None:
    durations = np.full(100_000, 10, np.int64)
    durations[54_321] = 9_999
    starts = np.concatenate([[0], np.cumsum(durations[:-1])]).astype(np.int64)
    lane = _lane(starts, durations, 0, len(starts), 0)
    window = lane.window(0, int(starts[-1]) + 10, 4)
    assert 54_321 in window.row.tolist()
    assert window.count.sum() == 100_000
    assert np.allclose(window.busy, 1.0)


def test_lanes_follow_the_nesting() -> None:
    track = np.array([1, 1, 1, 2], np.int32)
    start = np.array([0, 10, 30, 5], np.int64)
    duration = np.array([100, 10, 20, 1], np.int64)
    order, lanes_ = lane_order(track, start, duration, np.array([1, 2, 3, 4]), np.array([-1, 1, 1, -1]))
    assert [(t, depth, order[a:b].tolist()) for t, depth, a, b in lanes_] == [
        (1, 0, [0]),
        (1, 1, [1, 2]),
        (2, 0, [3]),
    ]


def test_events_that_overlap_without_nesting_get_lanes_of_their_own() -> None:
    start = np.array([0, 5, 8, 20], np.int64)
    duration = np.array([10, 10, 4, 5], np.int64)
    order, lanes_ = lane_order(np.zeros(4, np.int32), start, duration, np.arange(4), np.full(4, -1))
    assert [order[a:b].tolist() for _, _, a, b in lanes_] == [[0, 3], [1], [2]]


@settings(max_examples=100)
@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 60), st.integers(0, 20), st.integers(-1, 30)), max_size=40
    )
)
def test_no_lane_holds_two_events_at_once_and_none_is_lost(rows: list[tuple[int, int, int, int]]) -> None:
    track = np.array([r[0] for r in rows], np.int32)
    start = np.array([r[1] for r in rows], np.int64)
    duration = np.array([r[2] for r in rows], np.int64)
    # Only earlier events may be parents, as in a real run.
    parent = np.array([r[3] if r[3] < i else -1 for i, r in enumerate(rows)], np.int64)
    order, lanes_ = lane_order(track, start, duration, np.arange(len(rows)), parent)
    assert sorted(order.tolist()) == list(range(len(rows)))
    for number, _, first, last in lanes_:
        own = order[first:last]
        assert set(track[own].tolist()) == {number}
        ends = (start + duration)[own]
        assert (np.diff(start[own]) >= 0).all()
        assert (start[own][1:] >= ends[:-1]).all()


def test_the_sample_run_is_laid_out(run: Run) -> None:
    timeline = load_timeline(run, 0)
    assert [(track.label, track.kind, track.device) for track in timeline.tracks] == [
        ("python main", "thread", "cpu"),
        ("stream 7", "stream", "cuda:0"),
        ("stream 20 nccl", "stream", "cuda:0"),
    ]
    assert (timeline.start_ns, timeline.end_ns) == (START, START + 6 * STEP_NS)
    assert sum(track.events for track in timeline.tracks) == len(timeline.event_id) == 384
    assert timeline.left_out == 0


def test_search_finds_every_event_in_order(run: Run) -> None:
    timeline = load_timeline(run, 0)
    rows = timeline.find("ALLREDUCE_S", 0).rows
    assert [timeline.name(row) for row in rows] == ["ncclDevKernel_AllReduce_Sum_f32"] * 6
    assert (np.diff(timeline.row_start_ns[rows]) > 0).all()
    assert len(timeline.find("no such name", 0).rows) == len(timeline.find("", 0).rows) == 0


def test_a_row_knows_its_place(run: Run) -> None:
    timeline = load_timeline(run, 1)
    row = int(timeline.find("nccl", 0).rows[0])
    assert timeline.place(row) == (2, 0)
    assert timeline.row_of(int(timeline.event_id[row])) == row
    assert timeline.row_of(10**9) is None


def test_statistics_of_one_step(run: Run) -> None:
    timeline = load_timeline(run, 0)
    answer = timeline.statistics(START, START + STEP_NS)
    busy = {track["label"]: track["busy_ns"] for track in answer["tracks"]}
    # Forward 3 x (700 + 90) us and 50 us, backward 3 x 760 us, 8 x 30 us optimizer, 10 us copy.
    assert busy["stream 7"] == 3 * 790_000 + 50_000 + 3 * 760_000 + 8 * 30_000 + 10_000
    assert busy["stream 20 nccl"] == 1_000_000
    assert busy["python main"] == STEP_NS
    names = {name["name"]: name for name in answer["names"]}
    assert names["DataLoader.__next__"]["total_ns"] == 4_000_000
    assert names["ampere_sgemm_64x64_nt"]["count"] == 3


def test_statistics_clip_events_to_the_range(run: Run) -> None:
    timeline = load_timeline(run, 0)
    answer = timeline.statistics(START + 1_000_000, START + 2_000_000)
    names = {name["name"]: name["total_ns"] for name in answer["names"]}
    assert names == {"step 0": 1_000_000, "DataLoader.__next__": 1_000_000}


def test_too_many_events_leave_the_shortest_out(run: Run) -> None:
    timeline = load_timeline(run, 0, max_events=100)
    whole = load_timeline(run, 0)
    assert len(timeline.event_id) <= 110
    assert timeline.left_out == 384 - len(timeline.event_id)
    assert timeline.row_duration_ns.min() > np.sort(whole.row_duration_ns)[200]


def test_a_rank_without_events(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "empty", made_by="generator") as writer:
        writer.write("tracks", [{"track_id": 1, "kind": "thread", "label": "main"}])
    timeline = load_timeline(open_run(tmp_path / "empty"), 0)
    assert timeline.tracks == ()
    assert timeline.statistics(0, 10)["events"] == 0
