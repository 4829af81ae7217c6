"""Plots of values over time: one band per series, in eighths of a cell, on one time axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from explorer.tui.text import fit
from explorer.tui.theme import inks, palette_of
from explorer.tui.widgets.timeline_canvas import label_cells

_BLOCKS = " ▁▂▃▄▅▆▇█"


@dataclass(frozen=True)
class Band:
    """One series to draw: `values` over the whole axis (None: unknown), texts for the top and bottom of its scale, and a
    second series behind it, such as reserved behind allocated memory."""

    title: str
    values: Sequence[float | None]
    low: float
    high: float
    high_text: str
    low_text: str
    note: str = ""
    behind: Sequence[float | None] = field(default=())


class Plots(ScrollView, can_focus=True):
    """Plots."""

    DEFAULT_CSS = """
    Plots {
        background: $background; scrollbar-size-vertical: 1; overflow-x: hidden; height: 1fr;
        & > .plots--title { color: $foreground; background: $surface; }
        & > .plots--dim { color: $ink-muted; }
    }
    """
    COMPONENT_CLASSES = {"plots--title", "plots--dim"}
    HELP_TITLE = "On the plots"
    BINDINGS = [
        Binding("up,k", "move(-1)", "Plot above", show=False),
        Binding("down,j", "move(1)", "Plot below", show=False),
        Binding("plus,equals_sign", "taller(1)", "Taller", key_display="+"),
        Binding("minus", "taller(-1)", "Lower", key_display="-"),
    ]

    class Chosen(Message):
        """A plot came to the front."""

        def __init__(self, index: int) -> None:
            super().__init__()
            self.index = index

    def __init__(
        self, *, id: str | None = None, empty: str = "Nothing to plot.", band_cells: int = 4
    ) -> None:
        super().__init__(id=id)
        self.bands: Sequence[Band] = ()
        self.ticks: Sequence[tuple[str, float]] = ()
        self.cursor = 0
        self.band_cells = band_cells
        self.empty = empty
        self.loaded = False

    def show(self, bands: Sequence[Band], ticks: Sequence[tuple[str, float]] = ()) -> None:
        """Show these; `ticks` are labels at shares of the time axis."""
        self.bands, self.ticks, self.loaded = bands, ticks, True
        self.cursor = max(0, min(self.cursor, len(bands) - 1))
        self._measure()
        self.refresh()

    @property
    def band_height(self) -> int:
        """Title and plot; a single plot fills the widget."""
        if len(self.bands) == 1:
            return max(4, self.size.height - 1)
        return self.band_cells + 1

    def _measure(self) -> None:
        self.virtual_size = Size(
            self.size.width, len(self.bands) * self.band_height + (1 if self.ticks else 0)
        )

    def on_resize(self, event: events.Resize) -> None:
        self._measure()

    @property
    def cells(self) -> int:
        return max(4, self.size.width - self.label_cells - 1)

    @property
    def label_cells(self) -> int:
        """As on the timeline, so that a moment stands in the same column."""
        return label_cells(self.size.width)

    def render_line(self, y: int) -> Strip:
        width, base = self.size.width, self.rich_style
        dim = base + self.get_component_rich_style("plots--dim", partial=True)
        if not self.bands:
            text = self.empty if self.loaded else "Loading…"
            return (
                Strip([Segment("  " + text, dim)]).adjust_cell_length(width, base)
                if y == 1
                else Strip.blank(width, base)
            )
        line = y + int(self.scroll_offset.y)
        index, inside = divmod(line, self.band_height)
        if index >= len(self.bands):
            if self.ticks and line == len(self.bands) * self.band_height:
                return self._axis(width, dim)
            return Strip.blank(width, base)
        band = self.bands[index]
        if inside == 0:
            style = self.get_component_rich_style("plots--title")
            muted = style + Style(color=inks(self.app.current_theme)["muted"])
            mark = "▌" if index == self.cursor and len(self.bands) > 1 else " "
            title = mark + band.title
            note = fit(band.note, max(0, width - len(title) - 3), "right") if band.note else ""
            return Strip([Segment(title + "  ", style), Segment(note, muted)]).adjust_cell_length(
                width, style
            )
        return self._row(band, index, inside - 1, self.band_height - 1, width, base, dim)

    def _row(self, band: Band, index: int, row: int, rows: int, width: int, base: Style, dim: Style) -> Strip:
        label = band.high_text if row == 0 else band.low_text if row == rows - 1 else ""
        palette = palette_of(self.app.current_theme)
        color = palette.series[index % len(palette.series)]
        front, back = _columns(band.values, self.cells), _columns(band.behind, self.cells)
        span = (band.high - band.low) or 1.0
        bottom = rows - 1 - row
        segments = [Segment(fit(label, self.label_cells - 1, "right") + " ", dim)]
        for cell in range(self.cells):
            value, behind = front[cell], back[cell] if back else None
            eighths = 0 if value is None else round((value - band.low) / span * rows * 8) - bottom * 8
            if value is not None and bottom == 0:
                eighths = max(eighths, 1)  # a known value shows even where it is the lowest
            ground = (
                palette.idle
                if behind is not None and (behind - band.low) / span * rows > bottom + 0.5
                else None
            )
            character = _BLOCKS[max(0, min(8, eighths))]
            segments.append(Segment(character, base + Style(color=color, bgcolor=ground)))
        return Strip(segments).simplify().adjust_cell_length(width, base)

    def _axis(self, width: int, dim: Style) -> Strip:
        cells = [" "] * self.cells
        free = 0
        for text, share in self.ticks:
            at = round(share * self.cells)
            shown = f"╵{text}"
            if at >= free and at + len(shown) <= self.cells:
                cells[at : at + len(shown)] = list(shown)
                free = at + len(shown) + 1
        return Strip([Segment(" " * self.label_cells + "".join(cells), dim)]).adjust_cell_length(width, dim)

    def action_move(self, by: int) -> None:
        self.cursor = max(0, min(self.cursor + by, len(self.bands) - 1))
        top, height = int(self.scroll_offset.y), self.size.height
        first = self.cursor * self.band_height
        if first < top:
            self.scroll_to(y=first, animate=False)
        elif first + self.band_height > top + height:
            self.scroll_to(y=first + self.band_height - height + 1, animate=False)
        self.post_message(self.Chosen(self.cursor))
        self.refresh()

    def action_taller(self, by: int) -> None:
        self.band_cells = max(1, min(20, self.band_cells + by))
        self._measure()
        self.refresh()

    def on_click(self, event: events.Click) -> None:
        index = (event.y + int(self.scroll_offset.y)) // self.band_height
        if index < len(self.bands):
            self.cursor = index
            self.action_move(0)


def _columns(values: Sequence[float | None], cells: int) -> list[float | None]:
    """The largest known value of each cell's part of the series."""
    if not values:
        return []
    count = len(values)
    columns: list[float | None] = []
    for cell in range(cells):
        first = cell * count // cells
        part = [v for v in values[first : max(first + 1, (cell + 1) * count // cells)] if v is not None]
        columns.append(max(part) if part else None)
    return columns
