"""Stacked bars: what each stretch of time went to, with a legend that fits the width."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from rich.text import Text
from textual.widget import Widget

from explorer.tui import units
from explorer.tui.theme import Palette, inks, palette_of

_PART_COLORS = {
    "compute": "kernel",
    "communication": "collective",
    "copy": "copy",
    "op": "op",
    "data": "data",
    "sync": "sync",
    "io": "io",
    "gc": "gc",
    "compile": "compile",
    "runtime": "runtime",
    "python": "python",
}


def part_color(palette: Palette, key: str) -> str:
    """Colour of a part of a step: that of the category it stands for; idle time stays dark."""
    return palette.idle if key == "idle" else palette.categories[_PART_COLORS.get(key, "other")]


@dataclass(frozen=True)
class BarPart:
    """A part of a bar: key (names its colour), label, nanoseconds, share of the bar."""

    key: str
    label: str
    duration_ns: int
    share: float


def bar_text(parts: Sequence[tuple[str, float]], width: int, palette: Palette, *, thin: bool = False) -> Text:
    """A bar of exactly `width` cells at a resolution of half a cell. `parts`: (key, share of the whole width).

    `thin` bars leave a gap to the row above, at a resolution of whole cells.
    """
    halves: list[str | None] = [None] * (2 * width)
    done, total = 0.0, 0
    for key, share in parts:
        done += share
        until = min(len(halves), round(done * len(halves)))
        if share > 0 and until == total and total < len(halves):
            until = total + 1  # anything above zero shows
        color = part_color(palette, key)
        for index in range(total, until):
            halves[index] = color
        total = max(total, until)
    line = Text(no_wrap=True, end="")
    # Cells that are alike go in one piece: each piece is styled and laid out for itself.
    for (left, right), alike in groupby(zip(halves[0::2], halves[1::2])):
        cells = len(list(alike))
        if thin:
            line.append(("▆" if left else " ") * cells, style=left or "")
        elif left == right:
            line.append(" " * cells, style=f"on {left}" if left else "")
        elif right is None:
            line.append("▌" * cells, style=f"{left}")
        elif left is None:
            line.append("▐" * cells, style=f"{right}")
        else:
            line.append("▌" * cells, style=f"{left} on {right}")
    return line


class StackedBar(Widget):
    """One thick bar with its legend underneath."""

    DEFAULT_CSS = """
    StackedBar { height: auto; padding: 0 1; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.parts: Sequence[BarPart] = ()

    def show(self, parts: Sequence[BarPart]) -> None:
        self.parts = parts
        self.refresh(layout=True)

    def render(self) -> Text:
        width = max(10, self.size.width - 2) if self.size.width else 60
        if not self.parts:
            return Text("")
        colors = palette_of(self.app.current_theme)
        bar = bar_text([(part.key, part.share) for part in self.parts], width, colors)
        lines = [bar, bar]
        lines += self._legend(width, colors)
        return Text("\n").join(lines)

    def _legend(self, width: int, colors: Palette) -> list[Text]:
        muted = inks(self.app.current_theme)["muted"]
        lines, line, used = [], Text(no_wrap=True, end=""), 0
        for part in self.parts:
            entry = Text(end="")
            entry.append("■ ", style=part_color(colors, part.key))
            entry.append(f"{part.label} ", style="")
            entry.append(units.duration(part.duration_ns), style="bold")
            entry.append(f" {units.share(part.share)}", style=muted)
            if used and used + 3 + entry.cell_len > width:
                lines.append(line)
                line, used = Text(no_wrap=True, end=""), 0
            if used:
                line.append("   ")
                used += 3
            line.append_text(entry)
            used += entry.cell_len
        lines.append(line)
        return lines

    def get_content_height(self, container: object, viewport: object, width: int) -> int:
        if not self.parts:
            return 3
        return 2 + len(self._legend(max(10, width), palette_of(self.app.current_theme)))
