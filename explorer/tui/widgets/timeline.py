"""The timeline under the hands: zooming, panning, choosing events, ranges and marks, by key and by mouse."""

from __future__ import annotations

from textual import events
from textual.binding import Binding
from textual.message import Message

from explorer.tui.widgets.timeline_canvas import HEAD, TimelineCanvas
from explorer.tui.widgets.timeline_rows import BETWEEN_TRACKS, row_index

COLOR_MODES = ("category", "name", "line", "module")
WHEEL_ZOOM = 1.35


class TimelineView(TimelineCanvas, can_focus=True):
    """Timeline."""

    HELP_TITLE = "On the timeline"
    BINDINGS = [
        Binding("w,plus,equals_sign", "zoom(2)", "Zoom in", key_display="w"),
        Binding("s,minus", "zoom(0.5)", "Zoom out", key_display="s"),
        Binding("a", "pan(-0.25)", "Left", key_display="a", tooltip="Pan left"),
        Binding("d", "pan(0.25)", "Right", key_display="d", tooltip="Pan right"),
        Binding("A", "pan(-0.9)", "A window to the left", show=False),
        Binding("D", "pan(0.9)", "A window to the right", show=False),
        Binding("left,h", "step(-1)", "Event before", show=False),
        Binding("right,l", "step(1)", "Next event", show=False),
        Binding("up,k", "lane(-1)", "Lane above", show=False),
        Binding("down,j", "lane(1)", "Lane below", show=False),
        Binding("pageup", "lane(-10)", "Lanes up", show=False),
        Binding("pagedown", "lane(10)", "Lanes down", show=False),
        Binding(
            "enter,f", "fit", "Zoom to it", key_display="f", tooltip="Zoom to the selection or the range"
        ),
        Binding("z,home", "whole", "All", key_display="z", tooltip="Show the whole recording"),
        Binding("full_stop", "next_step(1)", "Next step", key_display=".", show=False),
        Binding("comma", "next_step(-1)", "Step before", key_display=",", show=False),
        Binding("c", "color", "Colour", tooltip="Colour by category, name, line or module"),
        Binding("x", "collapse", "Collapse", tooltip="Collapse or open the track"),
        Binding("X", "collapse_all", "Collapse or open all tracks", show=False),
        Binding("left_square_bracket", "range('start')", "Range from here", key_display="[", show=False),
        Binding("right_square_bracket", "range('end')", "Range to here", key_display="]", show=False),
        Binding("m", "mark", "Mark", tooltip="Set or drop a mark"),
        Binding("apostrophe", "next_mark", "Next mark", key_display="'", show=False),
    ]

    class Selected(Message):
        """An event was selected (row None: nothing)."""

        def __init__(self, row: int | None) -> None:
            super().__init__()
            self.row = row

    class RangeChanged(Message):
        """A range was chosen or dropped."""

        def __init__(self, start_ns: int | None, end_ns: int | None) -> None:
            super().__init__()
            self.start_ns, self.end_ns = start_ns, end_ns

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._drag: int | None = None

    # Moving

    def show_window(self, start_ns: int, end_ns: int) -> None:
        """Show exactly this window, kept inside the recording as far as possible."""
        if self.timeline is not None:
            self.window.show(start_ns, end_ns)
            self.redraw()

    @property
    def focus_time_ns(self) -> int:
        """Where zooming by key goes: the selection where it is in view, else the middle."""
        if self.selected is not None:
            start, end = self.bounds_of(self.selected)
            if end >= self.start_ns and start <= self.end_ns:
                return (max(start, self.start_ns) + min(end, self.end_ns)) // 2
        return self.window.middle_ns

    def action_zoom(self, factor: float) -> None:
        self.zoom_at(float(factor), self.focus_time_ns)

    def zoom_at(self, factor: float, time_ns: int) -> None:
        """Zoom around a time, which stays where it is on screen."""
        if self.timeline is not None:
            self.window.zoom_at(factor, time_ns)
            self.redraw()

    def action_pan(self, part: float) -> None:
        if self.timeline is not None:
            self.window.pan(float(part))
            self.redraw()

    def action_whole(self) -> None:
        self.show_window(self.window.low_ns, self.window.high_ns)

    def action_fit(self) -> None:
        """Zoom to the selection, or to the range where there is one and no selection."""
        if self.selected is not None:
            start, end = self.bounds_of(self.selected)
            margin = max(end - start, 1) // 5
            self.show_window(start - margin, max(end, start + 1) + margin)
        elif self.range is not None:
            self.show_window(*self.range)

    def action_next_step(self, way: int) -> None:
        """Show the next training step whole."""
        if self.timeline is None or not self.timeline.steps:
            return
        starts = [step["start_ns"] for step in self.timeline.steps]
        here = sum(1 for start in starts if start <= self.window.middle_ns) - 1
        if sum(1 for start in starts if self.start_ns <= start < self.end_ns) > 1:
            # Several steps in view: begin with the first of them.
            here, way = next(i for i, start in enumerate(starts) if start >= self.start_ns), 0
        step = self.timeline.steps[max(0, min(here + way, len(starts) - 1))]
        self.show_window(step["start_ns"], step["start_ns"] + step["duration_ns"])

    # Choosing

    def select(self, row: int | None, *, reveal: bool = True) -> None:
        """Select an event and bring it into view."""
        self.selected, self.linked = row, None
        if row is not None and self.timeline is not None and reveal:
            place = self.timeline.place(row)
            if place is not None:
                track = self.timeline.tracks[place[0]]
                if place[1] > 0 and track.track_id in self.collapsed:
                    self.collapsed.discard(track.track_id)
                    self.list_rows()
                index = row_index(self.rows, row)
                if index is not None:
                    self.lane_cursor = index
                    self._keep_in_view()
            start, end = self.bounds_of(row)
            if start >= self.end_ns or end <= self.start_ns:
                half = self.window.span_ns // 2
                left = (start + end) // 2 - half
                self.show_window(left, left + self.window.span_ns)
        self.post_message(self.Selected(row))
        self.refresh()

    def _keep_in_view(self) -> None:
        height = max(1, self.size.height - HEAD)
        top = int(self.scroll_offset.y)
        place = next((at for at, (index, _) in enumerate(self.places) if index == self.lane_cursor), 0)
        if place < top:
            self.scroll_to(y=place, animate=False)
        elif place >= top + height:
            self.scroll_to(y=place - height + 1, animate=False)

    def action_lane(self, by: int) -> None:
        if not self.rows:
            return
        self.lane_cursor = max(0, min(self.lane_cursor + by, len(self.rows) - 1))
        self._keep_in_view()
        row = self.rows[self.lane_cursor].lane.nearest(self.focus_time_ns)
        if row is not None:
            self.select(row)

    def action_step(self, by: int) -> None:
        if not self.rows:
            return
        lane = self.rows[self.lane_cursor].lane
        if self.selected is not None and lane.first <= self.selected < lane.last:
            self.select(max(lane.first, min(self.selected + by, lane.last - 1)))
        elif (row := lane.nearest(self.focus_time_ns)) is not None:
            self.select(row)

    # Colours, tracks, ranges, marks

    def action_color(self) -> None:
        self.color_mode = COLOR_MODES[(COLOR_MODES.index(self.color_mode) + 1) % len(COLOR_MODES)]
        self.redraw()

    def action_collapse(self) -> None:
        if self.rows:
            self.collapsed ^= {self.rows[self.lane_cursor].track.track_id}
            self.list_rows()

    def action_collapse_all(self) -> None:
        if self.timeline is not None:
            every = {track.track_id for track in self.timeline.tracks}
            self.collapsed = set() if self.collapsed >= every else every
            self.list_rows()

    def filter_tracks(self, words: str) -> None:
        """List only tracks whose name holds all the words."""
        self.track_filter = words
        self.list_rows()

    def action_range(self, side: str) -> None:
        """Set one end of the range to the selection's start or end, or to that of the window."""
        if self.timeline is None:
            return
        ends = (self.start_ns, self.end_ns) if self.selected is None else self.bounds_of(self.selected)
        time_ns = ends[0] if side == "start" else ends[1]
        low, high = self.range or (time_ns, time_ns)
        self.set_range(time_ns if side == "start" else low, time_ns if side == "end" else high)

    def set_range(self, start_ns: int | None, end_ns: int | None) -> None:
        """Choose a range; None drops it."""
        known = start_ns is not None and end_ns is not None
        self.range = (min(start_ns, end_ns), max(start_ns, end_ns)) if known else None  # type: ignore[type-var, assignment]
        self.refresh()
        self.post_message(self.RangeChanged(*(self.range or (None, None))))

    def action_mark(self) -> None:
        """Set a mark at the selection's start (or the middle), or take it away."""
        if self.timeline is None:
            return
        time_ns = self.window.middle_ns if self.selected is None else self.bounds_of(self.selected)[0]
        self.marks = sorted({*self.marks} ^ {time_ns})
        self.refresh()

    def action_next_mark(self) -> None:
        if self.marks:
            mark = next((m for m in self.marks if m > self.window.middle_ns + 1), self.marks[0])
            half = self.window.span_ns // 2
            self.show_window(mark - half, mark + half)

    # Mouse

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self._wheel(event, -1)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self._wheel(event, 1)

    def _wheel(self, event: events.MouseEvent, way: int) -> None:
        """Shift pans, over the labels the lanes scroll, anywhere else the wheel zooms around the mouse."""
        event.stop()
        event.prevent_default()
        if event.shift:
            self.action_pan(0.15 * way)
        elif event.ctrl or event.x >= self.label_cells:
            self.zoom_at(WHEEL_ZOOM**-way, self.time_at(event.x))
        else:
            self.scroll_relative(y=2 * way, animate=False)

    def on_mouse_down(self, event: events.MouseDown) -> None:
        if event.x >= self.label_cells and self.timeline is not None:
            self._drag = self.time_at(event.x)
            self.capture_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        if self._drag is not None and self._dragged(self._drag, self.time_at(event.x)):
            time_ns = self.time_at(event.x)
            self.range = min(self._drag, time_ns), max(self._drag, time_ns)
            self.refresh()

    def _dragged(self, first_ns: int, last_ns: int) -> bool:
        return abs(self.column_of(last_ns) - self.column_of(first_ns)) >= 2

    def on_mouse_up(self, event: events.MouseUp) -> None:
        started, self._drag = self._drag, None
        self.release_mouse()
        if started is None or self.timeline is None:
            return
        time_ns = self.time_at(event.x)
        if self._dragged(started, time_ns):
            self.set_range(started, time_ns)
            return
        place = event.y - HEAD + int(self.scroll_offset.y)
        known = event.y >= HEAD and 0 <= place < len(self.places)
        index, _ = self.places[place] if known else BETWEEN_TRACKS
        if index < 0:
            return
        self.lane_cursor = index
        row = self._event_at(index, event.x)
        if row is None and self.range is not None:
            self.set_range(None, None)
        self.select(row, reveal=False)

    def _event_at(self, index: int, x: int) -> int | None:
        """The event of a row under a column, or one that begins in the cell beside it."""
        lane = self.rows[index].lane
        middle_ns = self.time_at(x) + max(1, self.window.span_ns // self.cells) // 2
        row = lane.at(middle_ns)
        if row is None and (near := lane.nearest(middle_ns)) is not None:
            beside = abs(self.column_of(self.bounds_of(near)[0]) - (x - self.label_cells)) <= 1
            row = near if beside else None
        return row
