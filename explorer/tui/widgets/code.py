"""Source code with columns of cost beside each line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual import events
from textual.binding import Binding
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from explorer.tui import units
from explorer.tui.text import fit, safe_code
from explorer.tui.widgets.table import Column

if TYPE_CHECKING:
    from explorer.analysis.source_view import CodeFile, CodeLine

COLUMNS = (
    Column("bar", "", "bar", width=6),
    Column("top_share", "share", "share", width=7, rank=1),
    Column("cost_ns", "host", "duration", width=8),
    Column("device_ns", "device", "duration", width=8),
    Column("calls", "calls", "count", width=8, rank=3),
    Column("kernels", "kernels", "count", width=8, rank=5),
    Column("allocated_bytes", "memory", "size", width=9, rank=4),
    Column("achieved_flops", "speed", "work", width=13, rank=6),
    Column("efficiency", "of peak", "share", width=7, rank=2),
)
WIDEST_GUTTER = 0.55
"""Columns leave at least the rest of the width to the code."""


def highlighted(lines: Sequence[str], dark: bool) -> list[Text]:
    """Each line with the colours of Python syntax."""
    from rich.syntax import Syntax

    text = "\n".join(safe_code(line) for line in lines)
    syntax = Syntax("", "python", theme="one-dark" if dark else "friendly", background_color="default")
    colored = syntax.highlight(text).split("\n", allow_blank=True)
    return [*colored[: len(lines)], *(Text("") for _ in range(len(lines) - len(colored)))]


NO_TEXT = "the run does not hold this file: its lines with a cost"


class Code(ScrollView, can_focus=True):
    """Code of one file with its costs."""

    DEFAULT_CSS = """
    Code {
        background: $background; scrollbar-size-vertical: 1; scrollbar-size-horizontal: 1; overflow-x: hidden;
        & > .code--header { color: $ink-muted; background: $surface; }
        & > .code--number { color: $ink-faint; }
        & > .code--cost { color: $foreground; }
        & > .code--zero { color: $ink-faint; }
        & > .code--hot { color: $warning; text-style: bold; }
        & > .code--bar { color: $accent; }
        & > .code--cursor { background: $ink-cursor; }
        & > .code--cursor-blurred { background: $ink-resting; }
    }
    """
    COMPONENT_CLASSES = {
        "code--header",
        "code--number",
        "code--cost",
        "code--zero",
        "code--hot",
        "code--bar",
        "code--cursor",
        "code--cursor-blurred",
    }
    HELP_TITLE = "In the code"
    BINDINGS = [
        Binding("up,k", "move(-1)", "Line up", show=False),
        Binding("down,j", "move(1)", "Line down", show=False),
        Binding("pageup", "page(-1)", "Page up", show=False),
        Binding("pagedown", "page(1)", "Page down", show=False),
        Binding("home,g", "edge(-1)", "First line", show=False),
        Binding("end,G", "edge(1)", "Last line", show=False),
        Binding("n", "hot(1)", "Next costly", tooltip="Next costly line"),
        Binding("N", "hot(-1)", "Previous costly line", show=False),
        Binding("left", "shift(-8)", "Scroll left", show=False),
        Binding("right", "shift(8)", "Scroll right", show=False),
    ]

    cursor = reactive(0)

    class Moved(Message):
        """The cursor came to a line."""

        def __init__(self, line: CodeLine) -> None:
            super().__init__()
            self.line = line

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.file: CodeFile | None = None
        self.colored: list[Text] = []
        self.shift = 0
        self._top_share = 0.0
        self._columns: list[Column] = []

    def show(self, file: CodeFile, colored: list[Text], line: int | None = None) -> None:
        """Show a file; the cursor goes to `line`, or to the costliest one."""
        self.file, self.colored, self.shift = file, colored, 0
        costs = [self._share(each) for each in file.lines]
        self._top_share = max(costs, default=0.0)
        self._measure()
        wanted = costs.index(self._top_share) if costs and self._top_share else 0
        if line is not None:
            wanted = next((i for i, each in enumerate(file.lines) if each.number >= line), wanted)
        self.cursor = wanted
        self.call_after_refresh(self._center)
        if file.lines:
            self.post_message(self.Moved(file.lines[wanted]))
        self.refresh()

    @staticmethod
    def _share(line: CodeLine) -> float:
        return float(line.costs["top_share"]) if line.costs else 0.0

    @property
    def line(self) -> CodeLine | None:
        lines = self.file.lines if self.file else ()
        return lines[self.cursor] if 0 <= self.cursor < len(lines) else None

    def _center(self) -> None:
        self.scroll_to(y=max(0, self.cursor - self.size.height // 3), animate=False)

    def on_resize(self, event: events.Resize) -> None:
        self._measure()

    def _measure(self) -> None:
        lines = self.file.lines if self.file else ()
        used = {key for line in lines if line.costs for key, value in line.costs.items() if value}
        columns = [
            column
            for column in COLUMNS
            if column.key in ("bar", "top_share", "cost_ns") or column.key in used
        ]
        width = self.size.width or 80
        while sum(c.cells + 1 for c in columns) > width * WIDEST_GUTTER and any(c.rank for c in columns):
            columns.remove(max(columns, key=lambda c: c.rank))
        self._columns = columns
        self.virtual_size = Size(width, len(lines) + 1)

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        base = self.rich_style
        style = self.get_component_rich_style
        digits = len(str(self.file.lines[-1].number)) if self.file and self.file.lines else 3
        if y == 0:
            header = style("code--header")
            segments = [Segment(" " * (digits + 2), header)]
            for column in self._columns:
                segments.append(Segment(fit(column.title, column.cells, "right") + " ", header))
            segments.append(Segment("  " + (self.file.file if self.file else ""), header))
            return Strip(segments).adjust_cell_length(width, header)
        index = y - 1 + int(self.scroll_offset.y)
        if self.file is None or index >= len(self.file.lines):
            if y == 3 and not (self.file and self.file.lines):
                text = "Loading…" if self.file is None else "No line of this file is known."
                return Strip(
                    [Segment("  " + text, base + style("code--zero", partial=True))]
                ).adjust_cell_length(width, base)
            return Strip.blank(width, base)
        line = self.file.lines[index]
        if index == self.cursor:
            base += style("code--cursor" if self.has_focus else "code--cursor-blurred", partial=True)
        segments = [Segment(f" {line.number:>{digits}} ", base + _ink(style("code--number", partial=True)))]
        segments += self._costs(line, base)
        segments.append(Segment("│ ", base + _ink(style("code--number", partial=True))))
        colored = self.colored[index] if index < len(self.colored) else Text("")
        if self.shift:
            colored = colored[self.shift :]
        if index == 0 and not self.file.complete and not line.text.strip():
            colored = Text(NO_TEXT, style=Style(color=style("code--zero", partial=True).color))
        for piece, ink, _ in colored.render(self.app.console):
            if piece:
                segments.append(Segment(piece, base + _ink(ink) if isinstance(ink, Style) else base))
        return Strip(segments).adjust_cell_length(width, base)

    def _costs(self, line: CodeLine, base: Style) -> list[Segment]:
        style = self.get_component_rich_style
        costs: dict[str, Any] = line.costs or {}
        share = self._share(line)
        hot = share > 0.05
        normal = base + (style("code--hot", partial=True) if hot else _ink(style("code--cost", partial=True)))
        zero = base + _ink(style("code--zero", partial=True))
        bar = base + _ink(style("code--bar", partial=True))
        segments = []
        for column in self._columns:
            if column.kind == "bar":
                part = share / self._top_share if self._top_share else 0.0
                segments.append(Segment(units.bar(part, column.cells) + " ", bar))
                continue
            value = costs.get(column.key)
            text = column.text({column.key: value}) if value else ""
            if column.key == "achieved_flops" and value:
                text += "/s"
            segments.append(Segment(fit(text, column.cells, "right") + " ", normal if text else zero))
        return segments

    def watch_cursor(self, old: int, new: int) -> None:
        if old == new or self.file is None:
            return
        height, top = max(1, self.size.height - 1), int(self.scroll_offset.y)
        if new < top:
            self.scroll_to(y=new, animate=False)
        elif new >= top + height:
            self.scroll_to(y=new - height + 1, animate=False)
        if self.line is not None:
            self.post_message(self.Moved(self.line))
        self.refresh()

    def move_to(self, index: int) -> None:
        count = len(self.file.lines) if self.file else 0
        self.cursor = max(0, min(index, count - 1))

    def action_move(self, by: int) -> None:
        self.move_to(self.cursor + by)

    def action_page(self, by: int) -> None:
        self.move_to(self.cursor + by * max(1, self.size.height - 2))

    def action_edge(self, side: int) -> None:
        self.move_to(0 if side < 0 else 1 << 30)

    def action_shift(self, by: int) -> None:
        self.shift = max(0, self.shift + by)
        self.refresh()

    def action_hot(self, way: int) -> None:
        """To the next line that costs at least a hundredth, around the end."""
        lines = self.file.lines if self.file else ()
        count = len(lines)
        for step in range(1, count + 1):
            index = (self.cursor + way * step) % count
            if self._share(lines[index]) >= 0.01:
                self.move_to(index)
                return

    def on_click(self, event: events.Click) -> None:
        if event.y > 0:
            self.move_to(event.y - 1 + int(self.scroll_offset.y))

    def on_focus(self) -> None:
        self.refresh()

    def on_blur(self) -> None:
        self.refresh()


def _ink(style: Style) -> Style:
    """A style without its background, to draw on a highlighted row."""
    return Style(color=style.color, bold=style.bold, italic=style.italic)
