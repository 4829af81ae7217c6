"""The timeline: tracks against time, drawn at half a cell, with a selection, a range, marks, matches and launch arrows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.segment import Segment
from textual import events
from textual.binding import Binding
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from explorer.tui import units
from explorer.tui.text import fit
from explorer.tui.theme import inks, palette_of
from explorer.tui.widgets.timeline_paint import Colors, LanePicture, paint_lane, ruler_ticks

if TYPE_CHECKING:
    from explorer.analysis.timeline import Lane, Timeline, TimelineTrack

HEAD = 2
"""Rows of the ruler."""
COLOR_MODES = ("category", "name", "line", "module")
SMALLEST_WINDOW_NS = 50


@dataclass(frozen=True)
class Row:
    """A row of the picture: a lane of a track; `first` carries the track's label."""

    track: TimelineTrack
    lane: Lane
    first: bool


class TimelineView(ScrollView, can_focus=True):
    """Timeline."""

    DEFAULT_CSS = """
    TimelineView {
        background: $background; scrollbar-size-vertical: 1; overflow-x: hidden;
        & > .timeline--head { background: $surface; color: $ink-muted; }
        & > .timeline--label { color: $foreground; background: $surface; }
        & > .timeline--other { color: $ink-faint; background: $surface; }
    }
    """
    COMPONENT_CLASSES = {"timeline--head", "timeline--label", "timeline--other"}
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

    class Moved(Message):
        """The window or the colours changed."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.timeline: Timeline | None = None
        self.start_ns, self.end_ns = 0, 1
        self.rows: list[Row] = []
        self._places: list[tuple[int, int]] = []
        """For every line of the picture its row, and which line of the row it is; (-1, 0) between tracks"""
        self.lane_cursor = 0
        self.selected: int | None = None
        self.linked: tuple[int, int] | None = None
        """Rows of the launching and of the launched event of the selection"""
        self.color_mode = "category"
        self.collapsed: set[int] = set()
        self.track_filter = ""
        self.range: tuple[int, int] | None = None
        self.marks: list[int] = []
        self.matches: set[int] = set()
        self._drag: int | None = None
        self._pictures: dict[tuple[int, int], LanePicture] = {}
        self._colors: Colors | None = None
        self.message = "Laying out the timeline…"

    # What is shown

    def show(self, timeline: Timeline) -> None:
        """Show a rank's timeline, whole."""
        self.timeline = timeline
        self.start_ns, self.end_ns = timeline.start_ns, timeline.end_ns
        self.selected = self.linked = self.range = None
        self.matches = set()
        # Many lanes: open the busiest thread and the devices, fold the rest.
        lanes = sum(len(track.lanes) for track in timeline.tracks)
        self.collapsed = set()
        if lanes > 60:
            threads = [track for track in timeline.tracks if track.kind == "thread"]
            self.collapsed = {track.track_id for track in threads[1:]}
        self._list_rows()
        self._redraw()

    def _list_rows(self) -> None:
        self.rows = []
        if self.timeline is None:
            return
        words = self.track_filter.casefold().split()
        for track in self.timeline.tracks:
            text = f"{track.label} {track.device} {track.kind}".casefold()
            if not all(word in text for word in words):
                continue
            lanes = track.lanes[:1] if track.track_id in self.collapsed else track.lanes
            self.rows += [Row(track, lane, index == 0) for index, lane in enumerate(lanes)]
        self.lane_cursor = max(0, min(self.lane_cursor, len(self.rows) - 1))
        self._place_rows()

    def _place_rows(self) -> None:
        """Few lanes stand two lines high and apart by track; many stand close."""
        height = max(1, self.size.height - HEAD)
        tracks = sum(row.first for row in self.rows)
        tall = 2 if 2 * len(self.rows) + tracks - 1 <= height else 1
        apart = tall * len(self.rows) + tracks - 1 <= height
        self._places = []
        for index, row in enumerate(self.rows):
            if row.first and index and apart:
                self._places.append((-1, 0))
            self._places += [(index, line) for line in range(tall)]
        self.virtual_size = Size(self.size.width, len(self._places) + HEAD)

    def _redraw(self) -> None:
        self._pictures.clear()
        self.refresh()
        self.post_message(self.Moved())

    def notify_style_update(self) -> None:
        self._colors = None
        self._pictures.clear()
        super().notify_style_update()

    @property
    def paint_colors(self) -> Colors:
        theme = self.app.current_theme
        if self._colors is None or self._colors.key != (theme.name, self.color_mode, id(self.timeline)):
            assert self.timeline is not None
            self._colors = Colors(
                (theme.name, self.color_mode, id(self.timeline)),
                self.timeline,
                self.color_mode,
                palette_of(theme),
                inks(theme),
            )
            self._pictures.clear()
        return self._colors

    @property
    def label_cells(self) -> int:
        return 14 if self.size.width < 100 else 22

    @property
    def cells(self) -> int:
        return max(8, self.size.width - self.label_cells - 1)

    def time_at(self, x: int) -> int:
        """Time at the left edge of a column of the widget."""
        cell = max(0, min(x - self.label_cells, self.cells))
        return self.start_ns + (self.end_ns - self.start_ns) * cell // self.cells

    def column_of(self, time_ns: int) -> int:
        """Cell (from the gutter's right edge) of a time; may lie outside the view."""
        return (time_ns - self.start_ns) * self.cells // max(1, self.end_ns - self.start_ns)

    def on_resize(self, event: events.Resize) -> None:
        self._place_rows()
        self._pictures.clear()

    # Drawing

    def render_line(self, y: int) -> Strip:
        width, base = self.size.width, self.rich_style
        if self.timeline is None or not self.timeline.tracks:
            text = self.message if self.timeline is None else "This rank holds no events."
            style = base + self.get_component_rich_style("timeline--head", partial=True)
            return (
                Strip([Segment("  " + text, style)]).adjust_cell_length(width, base)
                if y == 2
                else Strip.blank(width, base)
            )
        if y < HEAD:
            return self._ruler(y, width)
        place = y - HEAD + int(self.scroll_offset.y)
        if place >= len(self._places):
            if not self.rows and y == HEAD + 1:
                return Strip([Segment("  No track matches the filter.", base)]).adjust_cell_length(
                    width, base
                )
            return Strip.blank(width, base)
        index, line = self._places[place]
        if index < 0:
            style = self.get_component_rich_style("timeline--other")
            following = self._places[place + 1][0]
            segments = [Segment(" " * self.label_cells, style), *self._gap(following)]
        else:
            row = self.rows[index]
            segments = [self._label(row, index == self.lane_cursor, line), *self._lane(index, row, line)]
        return Strip(segments).adjust_cell_length(width, base)

    def _label(self, row: Row, current: bool, line: int) -> Segment:
        style = self.get_component_rich_style("timeline--label" if row.first else "timeline--other")
        if row.first and line == 0:
            fold = "▸" if row.track.track_id in self.collapsed and len(row.track.lanes) > 1 else " "
            device = row.track.device
            narrow = self.label_cells < 20
            device = "" if narrow or device == "cpu" or row.track.label.startswith(device) else f"{device} "
            text = f"{fold}{device}{row.track.label}"
        else:
            text = ""
        mark = "▌" if current else " "
        return Segment(mark + fit(text, self.label_cells - 2) + " ", style)

    def _gap(self, following: int) -> list[Segment]:
        """The line between two tracks: empty but for what crosses it."""
        overlay: dict[int, tuple[str, str]] = {}
        self._overlay_range(overlay)
        self._overlay_arrow(overlay, following - 0.5)
        empty = LanePicture([-1] * (2 * self.cells), [None] * (2 * self.cells), [])
        return empty.segments(self.paint_colors, set(), set(), overlay, self._range_cells())

    def _lane(self, index: int, row: Row, line: int) -> list[Segment]:
        key = (row.lane.first, row.lane.last)
        colors = self.paint_colors
        picture = self._pictures.get(key)
        if picture is None:
            assert self.timeline is not None
            picture = paint_lane(self.timeline, row.lane, self.start_ns, self.end_ns, self.cells, colors)
            self._pictures[key] = picture
        overlay: dict[int, tuple[str, str]] = {}
        self._overlay_range(overlay)
        self._overlay_arrow(overlay, index + 0.25 * line)
        emphasised = {self.selected} if self.selected is not None else set()
        if self.linked:
            emphasised |= set(self.linked)
        return picture.segments(
            colors, emphasised, self.matches, overlay, self._range_cells(), named=line == 0
        )

    def _range_cells(self) -> tuple[int, int] | None:
        if self.range is None:
            return None
        return self.column_of(self.range[0]), self.column_of(self.range[1])

    def _overlay_range(self, overlay: dict[int, tuple[str, str]]) -> None:
        css = inks(self.app.current_theme)
        if self.range:
            for time_ns in self.range:
                overlay[self.column_of(time_ns)] = ("│", css["accent"])
        for mark in self.marks:
            overlay[self.column_of(mark)] = ("┆", css["good"])

    def _overlay_arrow(self, overlay: dict[int, tuple[str, str]], index: float) -> None:
        """The launch arrow: down (or up) from the launching call, then along the lane to the event it started."""
        if self.linked is None:
            return
        source, target = self.linked
        first, last = self._row_index(source), self._row_index(target)
        if first is None or last is None or self.timeline is None:
            return
        rows = first, last
        top, bottom = min(rows), max(rows)
        if not top <= index <= bottom + 0.25:
            return
        color = inks(self.app.current_theme)["accent"]
        x = self.column_of(int(self.timeline.row_start_ns[source]))
        end = self.column_of(int(self.timeline.row_start_ns[target]))
        if index != rows[1] and top < index < bottom:
            overlay[x] = ("│", color)
        elif index == rows[1]:
            if end > x:
                overlay[x] = ("└" if rows[1] > rows[0] else "┌", color)
                for cell in range(max(x + 1, 0), min(end, self.cells)):
                    overlay[cell] = ("─", color)
                overlay[end - 1 if end - 1 > x else x] = ("▶", color)
            else:
                overlay[x] = ("▼" if rows[1] > rows[0] else "▲", color)

    def _row_index(self, row: int) -> int | None:
        return next((i for i, each in enumerate(self.rows) if each.lane.first <= row < each.lane.last), None)

    def _ruler(self, y: int, width: int) -> Strip:
        assert self.timeline is not None
        style = self.get_component_rich_style("timeline--head")
        cells = [" "] * (self.cells + 1)
        span = self.end_ns - self.start_ns
        if y == 0:
            left = fit(" " + units.duration(span), self.label_cells)
            for time_ns, text in ruler_ticks(self.start_ns - self.timeline.start_ns, span, self.cells):
                at = self.column_of(time_ns + self.timeline.start_ns)
                _put(cells, at, "╷" + text)
        else:
            left = fit(f" {self.color_mode}", self.label_cells)
            last = -1
            for step in self.timeline.steps:
                first = self.column_of(step["start_ns"])
                end = self.column_of(step["start_ns"] + step["duration_ns"])
                if end < 0 or first > self.cells or first < last:
                    continue
                room = min(end, self.cells) - max(first, 0)
                text = f"step {step['step']}"
                if room < len(text) + 1:
                    text = str(step["step"])
                if first >= 0 or room > len(text) + 1:
                    _put(
                        cells, max(first, 0), ("│" if first >= 0 else "") + (text if room > len(text) else "")
                    )
                last = max(first, 0) + 1
            for mark in self.marks:
                _put(cells, self.column_of(mark), "◆")
        return Strip([Segment(left, style), Segment("".join(cells[: self.cells]), style)]).adjust_cell_length(
            width, style
        )

    # Moving

    def show_window(self, start_ns: int, end_ns: int) -> None:
        """Show exactly this window, kept inside the recording as far as possible."""
        if self.timeline is None:
            return
        whole = self.timeline.end_ns - self.timeline.start_ns
        span = max(min(end_ns - start_ns, whole), min(SMALLEST_WINDOW_NS, whole), 1)
        start_ns = max(self.timeline.start_ns, min(start_ns, self.timeline.end_ns - span))
        self.start_ns, self.end_ns = start_ns, start_ns + span
        self._redraw()

    def zoom_at(self, factor: float, time_ns: int) -> None:
        """Zoom around a time, which stays where it is on screen."""
        span = self.end_ns - self.start_ns
        wanted = max(SMALLEST_WINDOW_NS, round(span / factor))
        left = round((time_ns - self.start_ns) / max(1, span) * wanted)
        self.show_window(time_ns - left, time_ns - left + wanted)

    @property
    def focus_time_ns(self) -> int:
        """Where zooming by key goes: the selection where it is in view, else the middle."""
        if self.selected is not None and self.timeline is not None:
            start = int(self.timeline.row_start_ns[self.selected])
            end = start + int(self.timeline.row_duration_ns[self.selected])
            if end >= self.start_ns and start <= self.end_ns:
                return (max(start, self.start_ns) + min(end, self.end_ns)) // 2
        return (self.start_ns + self.end_ns) // 2

    def select(self, row: int | None, *, reveal: bool = True) -> None:
        """Select an event and bring it into view."""
        self.selected, self.linked = row, None
        if row is not None and self.timeline is not None:
            place = self.timeline.place(row)
            if place is not None and reveal:
                track = self.timeline.tracks[place[0]]
                if place[1] > 0 and track.track_id in self.collapsed:
                    self.collapsed.discard(track.track_id)
                    self._list_rows()
                index = self._row_index(row)
                if index is not None:
                    self.lane_cursor = index
                    self._keep_in_view()
            start = int(self.timeline.row_start_ns[row])
            end = start + int(self.timeline.row_duration_ns[row])
            if reveal and (start >= self.end_ns or end <= self.start_ns):
                span = self.end_ns - self.start_ns
                middle = (start + end) // 2
                self.show_window(middle - span // 2, middle - span // 2 + span)
        self.post_message(self.Selected(row))
        self.refresh()

    def _keep_in_view(self) -> None:
        height = max(1, self.size.height - HEAD)
        top = int(self.scroll_offset.y)
        place = next((at for at, (index, _) in enumerate(self._places) if index == self.lane_cursor), 0)
        if place < top:
            self.scroll_to(y=place, animate=False)
        elif place >= top + height:
            self.scroll_to(y=place - height + 1, animate=False)

    def action_zoom(self, factor: float) -> None:
        self.zoom_at(float(factor), self.focus_time_ns)

    def action_pan(self, part: float) -> None:
        by = round((self.end_ns - self.start_ns) * float(part))
        self.show_window(self.start_ns + by, self.end_ns + by)

    def action_whole(self) -> None:
        if self.timeline is not None:
            self.show_window(self.timeline.start_ns, self.timeline.end_ns)

    def action_fit(self) -> None:
        """Zoom to the selection, or to the range where there is one and no selection."""
        if self.selected is not None and self.timeline is not None:
            start = int(self.timeline.row_start_ns[self.selected])
            length = max(int(self.timeline.row_duration_ns[self.selected]), 1)
            self.show_window(start - length // 5, start + length + length // 5)
        elif self.range is not None:
            self.show_window(*self.range)

    def action_lane(self, by: int) -> None:
        if not self.rows:
            return
        self.lane_cursor = max(0, min(self.lane_cursor + by, len(self.rows) - 1))
        self._keep_in_view()
        lane = self.rows[self.lane_cursor].lane
        row = lane.nearest(self.focus_time_ns)
        if row is not None:
            self.select(row)

    def action_step(self, by: int) -> None:
        if not self.rows:
            return
        lane = self.rows[self.lane_cursor].lane
        if self.selected is not None and lane.first <= self.selected < lane.last:
            self.select(max(lane.first, min(self.selected + by, lane.last - 1)))
        else:
            row = lane.nearest(self.focus_time_ns)
            if row is not None:
                self.select(row)

    def action_next_step(self, way: int) -> None:
        """Show the next training step whole."""
        if self.timeline is None or not self.timeline.steps:
            return
        starts = [step["start_ns"] for step in self.timeline.steps]
        middle = (self.start_ns + self.end_ns) // 2
        here = sum(1 for start in starts if start <= middle) - 1
        if sum(1 for start in starts if self.start_ns <= start < self.end_ns) > 1:
            # Several steps in view: begin with the first of them.
            here, way = next(i for i, start in enumerate(starts) if start >= self.start_ns), 0
        step = self.timeline.steps[max(0, min(here + way, len(starts) - 1))]
        self.show_window(step["start_ns"], step["start_ns"] + step["duration_ns"])

    def action_color(self) -> None:
        self.color_mode = COLOR_MODES[(COLOR_MODES.index(self.color_mode) + 1) % len(COLOR_MODES)]
        self._redraw()

    def action_collapse(self) -> None:
        if self.rows:
            self.collapsed ^= {self.rows[self.lane_cursor].track.track_id}
            self._list_rows()
            self._redraw()

    def action_collapse_all(self) -> None:
        if self.timeline is not None:
            every = {track.track_id for track in self.timeline.tracks}
            self.collapsed = set() if self.collapsed >= every else every
            self._list_rows()
            self._redraw()

    def action_range(self, side: str) -> None:
        """Set one end of the range to the selection's start or end."""
        if self.timeline is None:
            return
        if self.selected is not None:
            start = int(self.timeline.row_start_ns[self.selected])
            time_ns = start if side == "start" else start + int(self.timeline.row_duration_ns[self.selected])
        else:
            time_ns = self.start_ns if side == "start" else self.end_ns
        low, high = self.range or (time_ns, time_ns)
        self.set_range(time_ns if side == "start" else low, time_ns if side == "end" else high)

    def set_range(self, start_ns: int | None, end_ns: int | None) -> None:
        self.range = (
            None if start_ns is None or end_ns is None else (min(start_ns, end_ns), max(start_ns, end_ns))
        )
        self.refresh()
        self.post_message(self.RangeChanged(*(self.range or (None, None))))

    def action_mark(self) -> None:
        """Set a mark at the selection's start (or the middle), or take it away."""
        time_ns = self.focus_time_ns
        if self.selected is not None and self.timeline is not None:
            time_ns = int(self.timeline.row_start_ns[self.selected])
        self.marks = (
            [m for m in self.marks if m != time_ns]
            if time_ns in self.marks
            else sorted([*self.marks, time_ns])
        )
        self.refresh()

    def action_next_mark(self) -> None:
        if self.marks:
            middle = (self.start_ns + self.end_ns) // 2
            mark = next((m for m in self.marks if m > middle + 1), self.marks[0])
            half = (self.end_ns - self.start_ns) // 2
            self.show_window(mark - half, mark + half)

    # Mouse

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        event.prevent_default()
        if event.shift:
            self.action_pan(-0.15)
        elif event.ctrl or event.x >= self.label_cells:
            self.zoom_at(1.35, self.time_at(event.x))
        else:
            self.scroll_relative(y=-2, animate=False)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        event.prevent_default()
        if event.shift:
            self.action_pan(0.15)
        elif event.ctrl or event.x >= self.label_cells:
            self.zoom_at(1 / 1.35, self.time_at(event.x))
        else:
            self.scroll_relative(y=2, animate=False)

    def on_mouse_down(self, event: events.MouseDown) -> None:
        if event.x >= self.label_cells and self.timeline is not None:
            self._drag = self.time_at(event.x)
            self.capture_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        if self._drag is not None:
            time_ns = self.time_at(event.x)
            if abs(self.column_of(time_ns) - self.column_of(self._drag)) >= 2:
                self.range = (min(self._drag, time_ns), max(self._drag, time_ns))
                self.refresh()

    def on_mouse_up(self, event: events.MouseUp) -> None:
        started, self._drag = self._drag, None
        self.release_mouse()
        if started is None or self.timeline is None:
            return
        time_ns = self.time_at(event.x)
        if abs(self.column_of(time_ns) - self.column_of(started)) >= 2:
            self.set_range(started, time_ns)
            return
        place = event.y - HEAD + int(self.scroll_offset.y)
        index = self._places[place][0] if event.y >= HEAD and 0 <= place < len(self._places) else -1
        if index < 0:
            return
        self.lane_cursor = index
        cell = max(1, (self.end_ns - self.start_ns) // self.cells)
        lane = self.rows[index].lane
        row = lane.at(time_ns + cell // 2)
        if row is None:
            near = lane.nearest(time_ns + cell // 2)
            if (
                near is not None
                and abs(self.column_of(int(self.timeline.row_start_ns[near])) - (event.x - self.label_cells))
                <= 1
            ):
                row = near
        if row is None and self.range is not None:
            self.set_range(None, None)
        self.select(row, reveal=False)


def _put(cells: list[str], at: int, text: str) -> None:
    for offset, character in enumerate(text):
        if 0 <= at + offset < len(cells):
            cells[at + offset] = character
