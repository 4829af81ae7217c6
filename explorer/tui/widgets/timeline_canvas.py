"""The timeline as a picture: tracks against time at half a cell, with what is chosen, marked and found."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from rich.segment import Segment
from textual import events
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from explorer.tui import units
from explorer.tui.text import fit
from explorer.tui.theme import inks, palette_of
from explorer.tui.widgets.timeline_overlay import Arrow, Overlay, draw_arrow, draw_lines
from explorer.tui.widgets.timeline_paint import Colors, LanePicture, paint_lane
from explorer.tui.widgets.timeline_rows import Row, folded_at_first, places_of, row_index, rows_of
from explorer.tui.widgets.timeline_ruler import steps_line, times_line
from explorer.tui.widgets.timeline_window import TimeWindow

if TYPE_CHECKING:
    from explorer.analysis.timeline import Timeline

HEAD = 2
"""Lines of the ruler."""
NARROW = 100
"""Cells below which the labels of tracks are short."""


def label_cells(width: int) -> int:
    """Cells that the labels of tracks take in a terminal of this width."""
    return 14 if width < NARROW else 22


class TimelineCanvas(ScrollView):
    """What is shown of a timeline, and how it is drawn. Events are rows of the timeline's columns."""

    DEFAULT_CSS = """
    TimelineCanvas {
        background: $background; scrollbar-size-vertical: 1; overflow-x: hidden;
        & > .timeline--head { background: $surface; color: $ink-muted; }
        & > .timeline--label { color: $foreground; background: $surface; }
        & > .timeline--other { color: $ink-faint; background: $surface; }
    }
    """
    COMPONENT_CLASSES = {"timeline--head", "timeline--label", "timeline--other"}

    class Moved(Message):
        """The window or the colours changed."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.timeline: Timeline | None = None
        self.window = TimeWindow()
        self.rows: list[Row] = []
        self.places: list[tuple[int, int]] = []
        self.lane_cursor = 0
        self.selected: int | None = None
        self.linked: tuple[int, int] | None = None
        """The launching and the launched event of the selection"""
        self.color_mode = "category"
        self.collapsed: set[int] = set()
        self.track_filter = ""
        self.range: tuple[int, int] | None = None
        self.marks: list[int] = []
        self.matches: npt.NDArray[np.bool_] | None = None
        """For every event whether it was found; None without a search"""
        self.message = "Laying out the timeline…"
        self._pictures: dict[tuple[int, int], LanePicture] = {}
        self._colors: Colors | None = None

    # What is shown

    def show(self, timeline: Timeline) -> None:
        """Show a rank's timeline, whole."""
        self.timeline = timeline
        self.window = TimeWindow(timeline.start_ns, timeline.end_ns)
        self.selected = self.linked = self.range = self.matches = None
        self.collapsed = folded_at_first(timeline)
        self.list_rows()

    def list_rows(self) -> None:
        """List the lanes anew: the timeline, the filter or what is collapsed has changed."""
        self.rows = rows_of(self.timeline, self.collapsed, self.track_filter) if self.timeline else []
        self.lane_cursor = max(0, min(self.lane_cursor, len(self.rows) - 1))
        self._place_rows()
        self.redraw()

    def _place_rows(self) -> None:
        self.places = places_of(self.rows, max(1, self.size.height - HEAD))
        self.virtual_size = Size(self.size.width, len(self.places) + HEAD)

    def redraw(self) -> None:
        """Draw everything anew, and say that the window or the colours changed."""
        self._pictures.clear()
        self.refresh()
        self.post_message(self.Moved())

    @property
    def start_ns(self) -> int:
        return self.window.start_ns

    @property
    def end_ns(self) -> int:
        return self.window.end_ns

    @property
    def label_cells(self) -> int:
        return label_cells(self.size.width)

    @property
    def cells(self) -> int:
        return max(8, self.size.width - self.label_cells - 1)

    def time_at(self, x: int) -> int:
        """Time at the left edge of a column of the widget."""
        return self.window.time_at(x - self.label_cells, self.cells)

    def column_of(self, time_ns: int) -> int:
        """Cell (from the gutter's right edge) of a time; may lie outside the view."""
        return self.window.cell_of(time_ns, self.cells)

    def bounds_of(self, event: int) -> tuple[int, int]:
        """Start and end of an event in ns."""
        assert self.timeline is not None
        start = int(self.timeline.row_start_ns[event])
        return start, start + int(self.timeline.row_duration_ns[event])

    def on_resize(self, event: events.Resize) -> None:
        self._place_rows()
        self._pictures.clear()

    def notify_style_update(self) -> None:
        self._colors = None
        self._pictures.clear()
        super().notify_style_update()

    @property
    def paint_colors(self) -> Colors:
        """Colours of the theme and of what events are coloured by."""
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

    # Drawing

    def render_line(self, y: int) -> Strip:
        width, base = self.size.width, self.rich_style
        if self.timeline is None or not self.timeline.tracks:
            return self._notice(y, self.message if self.timeline is None else "This rank holds no events.")
        if y < HEAD:
            return self._ruler(y)
        place = y - HEAD + int(self.scroll_offset.y)
        if place >= len(self.places):
            return self._notice(y, "" if self.rows else "No track matches the filter.")
        index, line = self.places[place]
        if index < 0:
            style = self.get_component_rich_style("timeline--other")
            segments = [Segment(" " * self.label_cells, style), *self._gap(self.places[place + 1][0])]
        else:
            row = self.rows[index]
            segments = [self._label(row, index == self.lane_cursor, line), *self._lane(index, row, line)]
        return Strip(segments).adjust_cell_length(width, base)

    def _notice(self, y: int, text: str) -> Strip:
        width, base = self.size.width, self.rich_style
        if y != HEAD + 1 or not text:
            return Strip.blank(width, base)
        style = base + self.get_component_rich_style("timeline--head", partial=True)
        return Strip([Segment("  " + text, style)]).adjust_cell_length(width, base)

    def _ruler(self, y: int) -> Strip:
        assert self.timeline is not None
        style = self.get_component_rich_style("timeline--head")
        if y == 0:
            left, right = units.duration(self.window.span_ns), times_line(self.window, self.cells)
        else:
            left = self.color_mode
            right = steps_line(self.window, self.cells, self.timeline.steps, self.marks)
        text = fit(f" {left}", self.label_cells) + right
        return Strip([Segment(text, style)]).adjust_cell_length(self.size.width, style)

    def _label(self, row: Row, current: bool, line: int) -> Segment:
        style = self.get_component_rich_style("timeline--label" if row.first else "timeline--other")
        text = ""
        if row.first and line == 0:
            fold = "▸" if row.track.track_id in self.collapsed and len(row.track.lanes) > 1 else " "
            device, label = row.track.device, row.track.label
            told = device == "cpu" or label.startswith(device) or self.size.width < NARROW
            text = fold + ("" if told else f"{device} ") + label
        return Segment(("▌" if current else " ") + fit(text, self.label_cells - 2) + " ", style)

    def _gap(self, following: int) -> list[Segment]:
        """The line between two tracks: empty but for what crosses it."""
        empty = LanePicture([-1] * (2 * self.cells), [None] * (2 * self.cells), [])
        overlay = self._overlay(following - 0.5)
        return empty.segments(self.paint_colors, set(), None, overlay, self._range_cells())

    def _lane(self, index: int, row: Row, line: int) -> list[Segment]:
        assert self.timeline is not None
        key = row.lane.first, row.lane.last
        colors = self.paint_colors
        picture = self._pictures.get(key)
        if picture is None:
            picture = paint_lane(self.timeline, row.lane, self.start_ns, self.end_ns, self.cells, colors)
            self._pictures[key] = picture
        emphasised = {event for event in (self.selected, *(self.linked or ())) if event is not None}
        overlay = self._overlay(index + 0.1 * line)
        return picture.segments(
            colors, emphasised, self.matches, overlay, self._range_cells(), named=line == 0
        )

    def _range_cells(self) -> tuple[int, int] | None:
        return None if self.range is None else (self.column_of(self.range[0]), self.column_of(self.range[1]))

    def _overlay(self, at: float) -> Overlay:
        """What crosses the line at a row index."""
        css, overlay = inks(self.app.current_theme), Overlay()
        draw_lines(overlay, self._range_cells(), map(self.column_of, self.marks), css)
        if (arrow := self._arrow()) is not None:
            draw_arrow(overlay, arrow, at, self.cells, css["accent"])
        return overlay

    def _arrow(self) -> Arrow | None:
        if self.linked is None:
            return None
        source, target = self.linked
        first, last = row_index(self.rows, source), row_index(self.rows, target)
        if first is None or last is None:
            return None
        cells = [self.column_of(self.bounds_of(event)[0]) for event in self.linked]
        return Arrow(first, last, cells[0], cells[1])
