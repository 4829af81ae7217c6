"""The timeline screen: zooming, panning, selecting, arrows, search, ranges, marks, the mouse."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from textual.widgets import Input, Static

from explorer.tui.app import ExplorerApp
from explorer.tui.screenshot import settle
from explorer.tui.widgets.timeline import TimelineView
from explorer.tui.widgets.timeline_rows import BETWEEN_TRACKS, Row, places_of
from explorer.tui.widgets.timeline_ruler import ruler_ticks, steps_line
from explorer.tui.widgets.timeline_window import TimeWindow
from tests.tui.sample_run import START, STEP_NS

if TYPE_CHECKING:
    from explorer.analysis.timeline import Lane, TimelineTrack

Make = Callable[..., ExplorerApp]


def view_of(app: ExplorerApp) -> TimelineView:
    return app.screen.query_one(TimelineView)


def picture(view: TimelineView) -> list[str]:
    return ["".join(segment.text for segment in view.render_line(y)) for y in range(view.size.height)]


def detail(app: ExplorerApp) -> str:
    return str(app.screen.query_one("#detail-text", Static).render())


async def test_zoom_and_pan_by_keys_stay_inside_the_recording(make_app: Make) -> None:
    app = make_app(screen="timeline")
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        view = view_of(app)
        whole = (view.start_ns, view.end_ns)
        assert whole == (START, START + 6 * STEP_NS)
        await pilot.press("w")
        assert view.end_ns - view.start_ns == 3 * STEP_NS
        assert (view.start_ns + view.end_ns) // 2 == START + 3 * STEP_NS
        await pilot.press("a")
        assert view.start_ns == START + STEP_NS * 3 // 2 - STEP_NS * 3 // 4
        await pilot.press(*"aaaa")
        assert view.start_ns == START
        await pilot.press(*["D"] * 9)
        assert view.end_ns == START + 6 * STEP_NS
        await pilot.press(*["s"] * 5)
        assert (view.start_ns, view.end_ns) == whole
        await pilot.press(*["w"] * 60)
        assert view.end_ns - view.start_ns == 50
        await pilot.press("z")
        assert (view.start_ns, view.end_ns) == whole


async def test_steps_are_reached_one_by_one(make_app: Make) -> None:
    app = make_app(screen="timeline")
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        view = view_of(app)
        await pilot.press("full_stop")
        assert (view.start_ns, view.end_ns) == (START, START + STEP_NS)
        await pilot.press("full_stop", "full_stop")
        assert view.start_ns == START + 2 * STEP_NS
        await pilot.press("comma")
        assert view.start_ns == START + STEP_NS


async def test_names_and_tracks_are_drawn(make_app: Make) -> None:
    app = make_app(screen="timeline")
    async with app.run_test(size=(140, 36)) as pilot:
        await settle(pilot)
        await pilot.press("full_stop")
        await pilot.pause()
        lines = picture(view_of(app))
        assert any("python main" in line for line in lines)
        assert any("cuda:0 stream 7" in line for line in lines)
        assert any("DataLoader.__next__" in line for line in lines)
        assert any("aten::item" in line for line in lines)
        assert all(len(line) == 140 for line in lines)


async def test_selection_shows_details_and_the_launch(make_app: Make) -> None:
    app = make_app(screen="timeline")
    async with app.run_test(size=(140, 40)) as pilot:
        await settle(pilot)
        await pilot.press("slash", *"multi_tensor", "enter")
        await settle(pilot)
        view, shown = view_of(app), detail(app)
        assert view.timeline is not None
        assert "multi_tensor_apply_kernel" in shown
        assert "train.py:18" in shown
        assert "optimizer.step()" in shown
        assert "launched by cudaLaunchKernel" in shown
        assert "phase optimizer" in shown
        await pilot.press("f")
        await pilot.press(*["s"] * 7)
        await pilot.pause()
        drawn = "\n".join(picture(view))
        assert "▶" in drawn or "▼" in drawn
        selected = view.selected
        await pilot.press("p")
        await settle(pilot)
        assert view.selected is not None
        assert view.timeline.name(view.selected) == "cudaLaunchKernel"
        await pilot.press("p")
        await settle(pilot)
        assert view.selected == selected


async def test_search_goes_match_by_match_and_round(make_app: Make) -> None:
    app = make_app(screen="timeline")
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        view = view_of(app)
        assert view.timeline is not None
        await pilot.press("slash", *"allreduce_sum", "enter")
        await settle(pilot)
        seen = []
        for _ in range(7):
            assert view.selected is not None
            seen.append(int(view.timeline.row_start_ns[view.selected]))
            await pilot.press("n")
        assert seen[:6] == sorted(seen[:6])
        assert seen[6] == seen[0]
        assert "of 6" in str(app.screen.query_one("#timeline-status", Static).render())
        await pilot.press("escape")
        assert view.selected is None
        assert view.matches is None


async def test_arrows_walk_events_and_lanes(make_app: Make) -> None:
    app = make_app(screen="timeline")
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        view = view_of(app)
        assert view.timeline is not None
        await pilot.press("full_stop", "down", "right")
        first = view.selected
        await pilot.press("right")
        assert first is not None
        assert view.selected == first + 1
        await pilot.press("left")
        assert view.selected == first
        lane = view.lane_cursor
        await pilot.press("down")
        assert view.lane_cursor == lane + 1
        assert view.timeline.place(view.selected) is not None


async def test_a_range_by_keys_and_by_dragging_shows_its_statistics(make_app: Make) -> None:
    app = make_app(screen="timeline")
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        view = view_of(app)
        await pilot.press("full_stop", "left_square_bracket", "right_square_bracket")
        await settle(pilot)
        assert view.range == (START, START + STEP_NS)
        assert "Range of 20.0 ms" in detail(app)
        assert "DataLoader.__next__" in detail(app)
        await pilot.press("escape")
        assert view.range is None
        await pilot.mouse_down(TimelineView, offset=(40, 6))
        await pilot.hover(TimelineView, offset=(70, 6))
        await pilot.mouse_up(TimelineView, offset=(70, 6))
        await settle(pilot)
        assert view.range is not None
        assert view.column_of(view.range[0]) in (40 - view.label_cells - 1, 40 - view.label_cells)
        assert "Range of" in detail(app)


async def test_a_click_selects_what_is_there(make_app: Make) -> None:
    app = make_app(screen="timeline")
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        view = view_of(app)
        assert view.timeline is not None
        await pilot.press("full_stop")
        await pilot.pause()
        lines = picture(view)
        y = next(i for i, line in enumerate(lines) if "DataLoader" in line)
        await pilot.click(TimelineView, offset=(lines[y].index("DataLoader") + 2, y))
        await settle(pilot)
        assert view.selected is not None
        assert view.timeline.name(view.selected) == "DataLoader.__next__"
        assert "train.py:22" in detail(app)
        await pilot.press("e")
        await settle(pilot)
        assert app.current_mode == "source"


async def test_colours_tracks_marks_and_collapsing(make_app: Make) -> None:
    app = make_app(screen="timeline")
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        view = view_of(app)
        modes = []
        for _ in range(4):
            modes.append(view.color_mode)
            await pilot.press("c")
            await pilot.pause()
        assert modes == ["category", "name", "line", "module"]
        rows = len(view.rows)
        await pilot.press("x")
        assert len(view.rows) == rows - 3
        await pilot.press("x")
        assert len(view.rows) == rows
        await pilot.press("t", *"stream 20", "enter")
        await pilot.pause()
        assert [row.track.label for row in view.rows] == ["stream 20 nccl"]
        app.screen.query_one(Input)
        await pilot.press("t", *["backspace"] * 9, "enter")
        await pilot.pause()
        assert len(view.rows) == rows
        await pilot.press("m")
        assert view.marks == [START + 3 * STEP_NS]
        await pilot.press("m")
        assert view.marks == []


async def test_ranks_take_turns(make_app: Make) -> None:
    app = make_app(screen="timeline")
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        await pilot.press("r")
        await settle(pilot)
        timeline = view_of(app).timeline
        assert timeline is not None
        assert timeline.rank == 1


async def test_the_wheel_zooms_around_the_mouse(make_app: Make) -> None:
    from textual.events import MouseScrollUp

    app = make_app(screen="timeline")
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        view = view_of(app)
        x = 60
        before = view.time_at(x)
        view.post_message(MouseScrollUp(view, x, 5, 0, 0, 0, False, False, False))
        await pilot.pause()
        assert view.end_ns - view.start_ns < 6 * STEP_NS
        cell = (view.end_ns - view.start_ns) // view.cells
        assert abs(view.time_at(x) - before) <= 2 * cell


def test_ticks_are_round_and_inside() -> None:
    ticks = ruler_ticks(3_100_000, 10_000_000, 100)
    assert [time_ns for time_ns, _ in ticks] == [4_000_000, 6_000_000, 8_000_000, 10_000_000, 12_000_000]
    assert ticks[0][1] == "4.00 ms"


def test_a_step_that_began_before_the_window_is_named() -> None:
    window = TimeWindow(0, 1000)
    window.show(200, 300)
    steps = [{"step": 4, "start_ns": 0, "duration_ns": 250}, {"step": 5, "start_ns": 250, "duration_ns": 700}]
    line = steps_line(window, 40, steps, [275])
    assert line.startswith("step 4")
    assert line[20:27] == "│step 5"
    assert line[30] == "◆"


def test_rows_take_the_room_there_is() -> None:
    track = cast("TimelineTrack", None)
    lane = cast("Lane", None)
    rows = [Row(track, lane, True), Row(track, lane, False), Row(track, lane, True)]
    assert places_of(rows, 3) == [(0, 0), (1, 0), (2, 0)]
    assert places_of(rows, 4) == [(0, 0), (1, 0), BETWEEN_TRACKS, (2, 0)]
    assert [len(places_of(rows, height)) for height in (6, 7, 9, 10, 70)] == [4, 7, 7, 10, 10]
