"""A heat map of ranks and steps: one cell per step, colour by value."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding
from textual.color import Color
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from explorer.tui.text import fit
from explorer.tui.theme import inks, palette_of

HEAD = 2
"""Lines above the ranks: the scale and the steps."""
LABEL_CELLS = 9
TEXT_CELLS = 9
"""A step this wide shows its value."""
WIDEST = 11
_SHADES = " ░▒▓█"
SCALE_CELLS = 12


class HeatMap(ScrollView, can_focus=True):
    """Heat map."""

    DEFAULT_CSS = """
    HeatMap {
        background: $background; scrollbar-size-vertical: 1; scrollbar-size-horizontal: 1; height: 1fr;
        & > .heat--dim { color: $ink-muted; }
    }
    """
    COMPONENT_CLASSES = {"heat--dim"}
    HELP_TITLE = "On the heat map"
    BINDINGS = [
        Binding("left,h", "move(0, -1)", "Step before", show=False),
        Binding("right,l", "move(0, 1)", "Next step", show=False),
        Binding("up,k", "move(-1, 0)", "Rank above", show=False),
        Binding("down,j", "move(1, 0)", "Rank below", show=False),
        Binding("enter", "open", "Timeline"),
    ]

    class Moved(Message):
        """The cursor came to a rank and step (indices)."""

        def __init__(self, rank: int, step: int) -> None:
            super().__init__()
            self.rank, self.step = rank, step

    class Opened(Message):
        """Enter on a rank and step (indices)."""

        def __init__(self, rank: int, step: int) -> None:
            super().__init__()
            self.rank, self.step = rank, step

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.ranks: Sequence[int] = ()
        self.steps: Sequence[int] = ()
        self.shares: Sequence[Sequence[float | None]] = ()
        self.texts: Sequence[Sequence[str]] = ()
        self.scale = ("", "", "")
        self.rank, self.step = 0, 0
        self.loaded = False

    def show(
        self,
        ranks: Sequence[int],
        steps: Sequence[int],
        shares: Sequence[Sequence[float | None]],
        texts: Sequence[Sequence[str]],
        scale: tuple[str, str, str],
    ) -> None:
        """`shares[rank index][step index]`: 0 (coldest) to 1 (hottest), None where there is no such step; `texts` the same
        as values; `scale`: the coldest value, the hottest, and what is measured."""
        self.ranks, self.steps, self.shares, self.loaded = ranks, steps, shares, True
        self.texts, self.scale = texts, scale
        self.rank = max(0, min(self.rank, len(ranks) - 1))
        self.step = max(0, min(self.step, len(steps) - 1))
        self._measure()
        self.refresh()

    @property
    def cell(self) -> int:
        """Cells per step: as wide as fits and a value needs."""
        room = max(1, self.size.width - LABEL_CELLS - 1)
        return max(1, min(WIDEST, room // max(1, len(self.steps))))

    @property
    def lines(self) -> int:
        """Lines that everything takes: scale, steps, ranks."""
        return len(self.ranks) + HEAD

    def _measure(self) -> None:
        self.virtual_size = Size(LABEL_CELLS + len(self.steps) * self.cell + 1, self.lines)

    def on_resize(self, event: events.Resize) -> None:
        self._measure()

    def render_line(self, y: int) -> Strip:
        width, base = self.size.width, self.rich_style
        dim = base + self.get_component_rich_style("heat--dim", partial=True)
        if not self.ranks:
            text = "This run holds no steps." if self.loaded else "Loading…"
            return (
                Strip([Segment("  " + text, dim)]).adjust_cell_length(width, base)
                if y == HEAD
                else Strip.blank(width, base)
            )
        left = int(self.scroll_offset.x)
        room = max(1, (width - LABEL_CELLS) // self.cell)
        first = min(left // self.cell, max(0, len(self.steps) - room))
        shown = range(first, min(len(self.steps), first + room))
        if y == 0:
            return self._scale(width, base, dim)
        if y == 1:
            cells = [" "] * (len(shown) * self.cell + 1)
            free = 0
            for index in shown:
                at, text = (index - first) * self.cell, str(self.steps[index])
                if at >= free and at + len(text) <= len(cells):
                    cells[at : at + len(text)] = list(text)
                    free = at + len(text) + 1
            return Strip(
                [Segment(fit(" step", LABEL_CELLS), dim), Segment("".join(cells), dim)]
            ).adjust_cell_length(width, base)
        index = y - HEAD + int(self.scroll_offset.y)
        if index >= len(self.ranks):
            return Strip.blank(width, base)
        segments = [
            Segment(fit(f" rank {self.ranks[index]}", LABEL_CELLS), base if index == self.rank else dim)
        ]
        for step in shown:
            share = self.shares[index][step]
            if share is None:
                segments.append(Segment("·".center(self.cell), dim))
                continue
            here = index == self.rank and step == self.step
            segments.append(self._cell(share, self.texts[index][step], here))
        return Strip(segments).adjust_cell_length(width, base)

    def _cell(self, share: float, value: str, here: bool) -> Segment:
        """A step of a rank; the chosen one (`here`) stands out."""
        theme = self.app.current_theme
        css = inks(theme)
        text = value if self.cell >= TEXT_CELLS else "◆" if here else ""
        if here and self.cell >= TEXT_CELLS:
            return Segment(
                text.center(self.cell), Style(bgcolor=css["primary"], color=css["background"], bold=True)
            )
        if palette_of(theme).flat:
            # Sixteen colours have no shades of one colour: characters do.
            shade = _SHADES[round(share * (len(_SHADES) - 1))]
            return Segment(
                f" {text} ".center(self.cell, shade)[: self.cell] if text else shade * self.cell,
                Style(color=css["accent"]),
            )
        fill = _shade(css, share)
        ink = css["background"] if (fill.brightness > 0.45) == theme.dark else css["foreground"]
        return Segment(text.center(self.cell), Style(bgcolor=fill.hex6, color=ink))

    def _scale(self, width: int, base: Style, dim: Style) -> Strip:
        """The colours from coldest to hottest, with their values and what they stand for."""
        theme = self.app.current_theme
        css = inks(theme)
        low, high, meaning = self.scale
        segments = [Segment(" " * LABEL_CELLS + low + " ", dim)]
        for place in range(SCALE_CELLS):
            share = place / (SCALE_CELLS - 1)
            if palette_of(theme).flat:
                shade = _SHADES[round(share * (len(_SHADES) - 1))]
                segments.append(Segment(shade, Style(color=css["accent"])))
            else:
                segments.append(Segment(" ", Style(bgcolor=_shade(css, share).hex6)))
        room = width - sum(segment.cell_length for segment in segments) - cell_len(high) - 4
        segments.append(Segment(f" {high}   {fit(meaning, max(0, room)).rstrip()}", dim))
        return Strip(segments).adjust_cell_length(width, base)

    def action_move(self, ranks: int, steps: int) -> None:
        self.move_to(self.rank + ranks, self.step + steps)

    def move_to(self, rank: int, step: int) -> None:
        """Choose a rank and step, by index."""
        if not self.ranks or not self.steps:
            return
        self.rank = max(0, min(rank, len(self.ranks) - 1))
        self.step = max(0, min(step, len(self.steps) - 1))
        top, height = int(self.scroll_offset.y), max(1, self.size.height - HEAD)
        if self.rank < top:
            self.scroll_to(y=self.rank, animate=False)
        elif self.rank >= top + height:
            self.scroll_to(y=self.rank - height + 1, animate=False)
        room = max(1, (self.size.width - LABEL_CELLS) // self.cell)
        first = int(self.scroll_offset.x) // self.cell
        if not first <= self.step < first + room:
            self.scroll_to(x=max(0, self.step - room // 2) * self.cell, animate=False)
        self.post_message(self.Moved(self.rank, self.step))
        self.refresh()

    def action_open(self) -> None:
        if self.ranks and self.steps:
            self.post_message(self.Opened(self.rank, self.step))

    def on_click(self, event: events.Click) -> None:
        index = event.y - HEAD + int(self.scroll_offset.y)
        step = (event.x - LABEL_CELLS) // self.cell + int(self.scroll_offset.x) // self.cell
        if event.y >= HEAD and 0 <= index < len(self.ranks) and 0 <= step < len(self.steps):
            self.move_to(index, step)


def _shade(css: dict[str, str], share: float) -> Color:
    """The colour of a value, from the ground to the accent."""
    return Color.parse(css["background"]).blend(
        Color.parse(css["accent"]), 0.08 + 0.92 * max(0.0, min(1.0, share))
    )
