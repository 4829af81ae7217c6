"""A table that draws only the rows in view: sortable, filterable, with bars and sparklines, for any number of rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from explorer.tui import units
from explorer.tui.text import brief, fit, fit_path, safe

Row = Mapping[str, Any]

_WIDTHS = {"duration": 9, "share": 7, "count": 9, "size": 9, "work": 11, "number": 9, "bar": 8, "spark": 12}
_FORMATS: dict[str, Callable[[Any], str]] = {
    "duration": units.duration,
    "share": units.share,
    "count": units.count,
    "size": units.size,
    "work": units.work,
}


MIN_FLEX = 22
"""Cells that a flexible column has at least, before others are left out."""


@dataclass(frozen=True)
class Column:
    """A column of a table.

    `kind`: text, name (C++ names shortened), path (cut at its start), duration (ns), share (of 1), count, size
    (bytes), work (flop), number, bar (of 1) or spark (list of numbers). `flex` columns share the room that is left;
    of the others those with the highest `rank` are left out first when the terminal is narrow. `optional` columns are
    left out where they hold nothing but zeros.
    """

    key: str
    title: str
    kind: str = "text"
    width: int = 0
    flex: int = 0
    rank: int = 0
    optional: bool = False

    @property
    def cells(self) -> int:
        return self.width or max(_WIDTHS.get(self.kind, 12), len(self.title))

    @property
    def numeric(self) -> bool:
        return self.kind in _FORMATS or self.kind == "number"

    def text(self, row: Row) -> str:
        """The cell as plain text, for showing, filtering and copying."""
        value = row.get(self.key)
        if self.kind in _FORMATS:
            return _FORMATS[self.kind](value)
        if value is None:
            return units.NONE if self.kind == "number" else ""
        return safe(str(value))


class Table(ScrollView, can_focus=True):
    """Rows under a fixed header. The cursor is a whole row."""

    DEFAULT_CSS = """
    Table {
        background: $background; scrollbar-size-vertical: 1; overflow-x: hidden;
        scrollbar-background: $background; scrollbar-color: $panel-lighten-1;
        & > .table--header { color: $ink-muted; background: $surface; }
        & > .table--sorted { color: $accent; background: $surface; text-style: bold; }
        & > .table--row { color: $foreground; }
        & > .table--dim { color: $ink-muted; }
        & > .table--bar { color: $primary; }
        & > .table--cursor { background: $ink-cursor; text-style: bold; }
        & > .table--cursor-blurred { background: $ink-resting; }
    }
    """
    COMPONENT_CLASSES = {
        "table--header",
        "table--sorted",
        "table--row",
        "table--dim",
        "table--bar",
        "table--cursor",
        "table--cursor-blurred",
    }
    HELP_TITLE = "In a table"
    BINDINGS = [
        Binding("up,k", "move(-1)", "Row up", show=False),
        Binding("down,j", "move(1)", "Row down", show=False),
        Binding("pageup", "page(-1)", "Page up", show=False),
        Binding("pagedown", "page(1)", "Page down", show=False),
        Binding("home,g", "edge(-1)", "First row", show=False),
        Binding("end,G", "edge(1)", "Last row", show=False),
        Binding("enter", "select", "Open", show=True),
        Binding("s", "sort(1)", "Sort", tooltip="Sort by the next column"),
        Binding("S", "reverse", "Reverse order", show=False),
        Binding("left", "shift(-1)", "Columns to the left", show=False),
        Binding("right", "shift(1)", "Columns to the right", show=False),
    ]

    cursor = reactive(0)

    class Highlighted(Message):
        """The cursor came to a row."""

        def __init__(self, table: Table, row: Row | None) -> None:
            super().__init__()
            self.table, self.row = table, row

        @property
        def control(self) -> Table:
            return self.table

    class Selected(Message):
        """Enter or a second click on a row."""

        def __init__(self, table: Table, row: Row) -> None:
            super().__init__()
            self.table, self.row = table, row

        @property
        def control(self) -> Table:
            return self.table

    def __init__(
        self,
        columns: Sequence[Column],
        *,
        id: str | None = None,
        classes: str | None = None,
        empty: str = "Nothing here.",
    ) -> None:
        super().__init__(id=id, classes=classes)
        self.columns = list(columns)
        self.empty = empty
        self.loading_text: str | None = "Loading…"
        self.sort_key: str | None = None
        self.descending = True
        self.filter = ""
        self._all: list[Row] = []
        self.rows: list[Row] = []
        self._layout: list[tuple[Column, int, int]] = []
        self._skipped = 0
        self._cut = False
        self._filled: set[str] = set()

    # What is shown

    def set_rows(self, rows: Sequence[Row]) -> None:
        """Show these rows, in the order and filter chosen before; the cursor stays where it was."""
        self._all = list(rows)
        optional = [column.key for column in self.columns if column.optional]
        self._filled = {key for key in optional if any(row.get(key) for row in self._all)}
        self.loading_text = None
        self._arrange()

    def wait_with(self, text: str) -> None:
        """What stands there until the rows come; nothing where they have."""
        if self.loading_text is not None and not self._all:
            self.loading_text = text
            self.refresh()

    def say(self, text: str) -> None:
        """Show a message in place of rows."""
        self._all, self.loading_text = [], text
        self._arrange()

    def set_columns(self, columns: Sequence[Column]) -> None:
        self.columns = list(columns)
        self.sort_key = None
        self._skipped = 0
        self._measure()

    def set_filter(self, text: str) -> None:
        """Keep rows in which every word occurs, in any text column, in any case."""
        self.filter = text
        self._arrange()

    def sort(self, key: str | None, descending: bool = True) -> None:
        self.sort_key, self.descending = key, descending
        self._arrange()

    @property
    def row(self) -> Row | None:
        return self.rows[self.cursor] if 0 <= self.cursor < len(self.rows) else None

    def _arrange(self) -> None:
        rows = self._all
        words = self.filter.casefold().split()
        if words:
            columns = [column for column in self.columns if column.kind in ("text", "name", "path")]
            rows = [
                row
                for row in rows
                if (text := " ".join(column.text(row) for column in columns).casefold()) is not None
                and all(word in text for word in words)
            ]
        if self.sort_key is not None:
            key = self.sort_key
            known = [row for row in rows if row.get(key) is not None]
            unknown = [row for row in rows if row.get(key) is None]
            known.sort(key=lambda row: _order(row[key]), reverse=self.descending)
            rows = [*known, *unknown]
        self.rows = list(rows)
        self._measure()
        self.cursor = max(0, min(self.cursor, len(self.rows) - 1))
        self.post_message(self.Highlighted(self, self.row))
        self.refresh()

    def on_resize(self, event: events.Resize) -> None:
        self._measure()
        self._keep_in_view()

    def _measure(self) -> None:
        width = self.scrollable_content_region.width or self.size.width
        chosen = [c for c in self.columns if not c.optional or c.key in self._filled][self._skipped :]

        def needed(columns: list[Column]) -> int:
            return sum((max(MIN_FLEX, c.width) if c.flex else c.cells) + 2 for c in columns)

        while width and len(chosen) > 1 and needed(chosen) > width and any(c.rank for c in chosen):
            worst = max(chosen, key=lambda c: c.rank)
            chosen.remove(worst)
        fixed = sum(c.cells for c in chosen if not c.flex) + 2 * len(chosen)
        flexes = sum(c.flex for c in chosen) or 1
        room, used, seen, x = max(0, width - fixed), 0, 0, 1
        self._layout = []
        for column in chosen:
            if column.flex:
                seen += column.flex
                cells = room * seen // flexes - used
                used += cells
            else:
                cells = column.cells
            self._layout.append((column, x, cells))
            x += cells + 2
        self._cut = bool(width) and x - 2 > width
        self.virtual_size = Size(width, len(self.rows) + 1)

    # Drawing

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        if y == 0:
            return self._header(width)
        index = y - 1 + int(self.scroll_offset.y)
        base = self.rich_style
        if index >= len(self.rows):
            message = self.loading_text or (
                f"No row matches “{safe(self.filter)}”." if self.filter and self._all else self.empty
            )
            if not self.rows and y == min(3, max(1, self.size.height - 1)):
                dim = base + self.get_component_rich_style("table--dim", partial=True)
                return Strip([Segment("  " + fit(message, max(0, width - 2)), dim)], width)
            return Strip.blank(width, base)
        return self._line(self.rows[index], index == self.cursor, width)

    def _header(self, width: int) -> Strip:
        plain = self.get_component_rich_style("table--header")
        sorted_style = self.get_component_rich_style("table--sorted")
        segments = [Segment(" ", plain)]
        for column, _, cells in self._layout:
            title, style = column.title, plain
            if column.key == self.sort_key:
                title, style = f"{title}{'▾' if self.descending else '▴'}", sorted_style
            segments.append(Segment(fit(title, cells, "right" if column.numeric else "left"), style))
            segments.append(Segment("  ", plain))
        strip = Strip(segments).adjust_cell_length(width, plain)
        if self._cut:
            strip = Strip([*strip.crop(0, width - 2), Segment(" »", sorted_style)], width)
        if self._skipped:
            strip = Strip([Segment("«", sorted_style), *strip.crop(1, width)], width)
        return strip

    def _line(self, row: Row, current: bool, width: int) -> Strip:
        base = self.rich_style + self.get_component_rich_style("table--row", partial=True)
        if current:
            base += self.get_component_rich_style(
                "table--cursor" if self.has_focus else "table--cursor-blurred", partial=True
            )
        dim = base + Style(color=self.get_component_rich_style("table--dim", partial=True).color)
        bar = base + Style(color=self.get_component_rich_style("table--bar", partial=True).color)
        segments = [Segment(" ", base)]
        for column, _, cells in self._layout:
            value = row.get(column.key)
            if column.kind == "bar":
                segments.append(Segment(units.bar(value, cells), bar))
            elif column.kind == "spark":
                segments.append(Segment(units.sparkline(list(value or ()), cells), dim))
            elif column.kind == "name":
                segments.append(Segment(fit(brief(str(value or "")), cells), base))
            elif column.kind == "path":
                segments.append(Segment(fit(fit_path(str(value or ""), cells), cells), base))
            else:
                text = column.text(row)
                style = dim if text in (units.NONE, "0", "0 %") or row.get("_dim") else base
                segments.append(Segment(fit(text, cells, "right" if column.numeric else "left"), style))
            segments.append(Segment("  ", base))
        return Strip(segments).adjust_cell_length(width, base)

    # Moving

    def watch_cursor(self, old: int, new: int) -> None:
        if old != new:
            self._keep_in_view()
            self.post_message(self.Highlighted(self, self.row))
            self.refresh()

    def _keep_in_view(self) -> None:
        height = max(1, self.size.height - 1)
        top = int(self.scroll_offset.y)
        if self.cursor < top:
            self.scroll_to(y=self.cursor, animate=False)
        elif self.cursor >= top + height:
            self.scroll_to(y=self.cursor - height + 1, animate=False)

    def move_to(self, index: int) -> None:
        self.cursor = max(0, min(index, len(self.rows) - 1))

    def action_move(self, by: int) -> None:
        self.move_to(self.cursor + by)

    def action_page(self, by: int) -> None:
        self.move_to(self.cursor + by * max(1, self.size.height - 2))

    def action_edge(self, side: int) -> None:
        self.move_to(0 if side < 0 else len(self.rows) - 1)

    def action_select(self) -> None:
        if self.row is not None:
            self.post_message(self.Selected(self, self.row))

    def action_sort(self, by: int) -> None:
        keys: list[str | None] = [
            None,
            *(c.key for c, _, _ in self._layout if c.kind not in ("bar", "spark")),
        ]
        here = keys.index(self.sort_key) if self.sort_key in keys else 0
        key = keys[(here + by) % len(keys)]
        numeric = any(c.key == key and c.numeric for c in self.columns)
        self.sort(key, descending=numeric)

    def action_shift(self, by: int) -> None:
        """Show columns further to the right or left, where they do not all fit."""
        if by < 0 or self._cut:
            self._skipped = max(0, min(self._skipped + by, len(self.columns) - 1))
            self._measure()
            self.refresh()

    def action_reverse(self) -> None:
        self.sort(self.sort_key, not self.descending)

    def on_click(self, event: events.Click) -> None:
        if event.y == 0:
            for column, x, cells in self._layout:
                if x <= event.x < x + cells + 2 and column.kind not in ("bar", "spark"):
                    again = column.key == self.sort_key
                    self.sort(column.key, not self.descending if again else column.numeric)
            return
        index = event.y - 1 + int(self.scroll_offset.y)
        if 0 <= index < len(self.rows):
            again = index == self.cursor and event.chain > 1
            self.cursor = index
            if again:
                self.action_select()

    def on_focus(self) -> None:
        self.refresh()

    def on_blur(self) -> None:
        self.refresh()

    def refresh_row(self, index: int) -> None:
        self.refresh(Region(0, index + 1 - int(self.scroll_offset.y), self.size.width, 1))


def _order(value: Any) -> tuple[int, Any]:
    """Numbers before text, so that a mixed column sorts too."""
    if isinstance(value, int | float):
        return (0, value)
    return (1, str(value).casefold())
