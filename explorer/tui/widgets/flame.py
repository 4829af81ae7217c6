"""A flame graph that zooms: time by call chain of user code, outermost on top."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from explorer.tui import units
from explorer.tui.text import fit, safe
from explorer.tui.theme import inks, palette_of

if TYPE_CHECKING:
    from explorer.analysis.flame import FlameCell, FlameNode


class Flame(ScrollView, can_focus=True):
    """Flame graph."""

    DEFAULT_CSS = """
    Flame {
        background: $background; height: 1fr; scrollbar-size-vertical: 1; overflow-x: hidden;
        & > .flame--status { background: $surface; color: $foreground; }
        & > .flame--dim { color: $ink-muted; }
    }
    """
    COMPONENT_CLASSES = {"flame--status", "flame--dim"}
    HELP_TITLE = "In the flame graph"
    BINDINGS = [
        Binding("left,h", "side(-1)", "Frame to the left", show=False),
        Binding("right,l", "side(1)", "Frame to the right", show=False),
        Binding("up,k", "out", "Caller", show=False),
        Binding("down,j", "into", "Longest callee", show=False),
        Binding("enter", "zoom", "Zoom in"),
        Binding("backspace,minus", "unzoom", "Zoom out"),
        Binding("e", "open", "Source"),
    ]

    class Opened(Message):
        """The user wants to see a frame's source."""

        def __init__(self, file: str, line: int) -> None:
            super().__init__()
            self.file, self.line = file, line

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.root: FlameNode | None = None
        self.zoomed: list[FlameNode] = []
        self.cells: list[FlameCell] = []
        self.rows: list[list[FlameCell]] = []
        self.chosen: FlameCell | None = None

    def show(self, root: FlameNode) -> None:
        """Show a tree, whole."""
        self.root = root
        self.zoomed = [root]
        self._lay_out()

    def on_resize(self, event: events.Resize) -> None:
        if self.root is not None:
            self._lay_out()

    def _lay_out(self) -> None:
        from explorer.analysis.flame import flame_cells

        width = max(1, self.size.width)
        self.cells = list(flame_cells(self.zoomed[-1], 0.5 / width))
        depth = max((cell.depth for cell in self.cells), default=0)
        self.rows = [[cell for cell in self.cells if cell.depth == level] for level in range(depth + 1)]
        node = self.chosen.node if self.chosen else None
        self.chosen = next(
            (cell for cell in self.cells if cell.node is node), self.cells[0] if self.cells else None
        )
        self.virtual_size = Size(width, len(self.rows) + 2)
        self.refresh()

    def render_line(self, y: int) -> Strip:
        width, base = self.size.width, self.rich_style
        dim = base + self.get_component_rich_style("flame--dim", partial=True)
        if self.root is None or not self.root.children:
            text = (
                "Loading…"
                if self.root is None
                else "No call chains of user code are known in this run. Record with lines on."
            )
            return (
                Strip([Segment("  " + text, dim)]).adjust_cell_length(width, base)
                if y == 2
                else Strip.blank(width, base)
            )
        if y == 0:
            return self._status(width)
        level = y - 1 + int(self.scroll_offset.y)
        if level >= len(self.rows):
            return Strip.blank(width, base)
        segments: list[Segment] = []
        x = 0
        for cell in self.rows[level]:
            left, right = (
                round(cell.left * width),
                max(round(cell.right * width), round(cell.left * width) + 1),
            )
            left = max(left, x)
            if right <= left:
                continue
            if left > x:
                segments.append(Segment(" " * (left - x), base))
            segments += self._frame(cell, right - left)
            x = right
        return Strip(segments).adjust_cell_length(width, base)

    def _frame(self, cell: FlameCell, cells: int) -> list[Segment]:
        palette = palette_of(self.app.current_theme)
        chosen = self.chosen is not None and cell.node is self.chosen.node
        color = (
            palette.series[hash_of(cell.node.file + cell.node.label.partition(" ")[0]) % len(palette.series)]
            if cell.node.file
            else palette.categories["python"]
        )
        ink = Style(color=palette.ink, bgcolor=color, bold=chosen, underline=chosen)
        if chosen:
            ink = Style(
                color=inks(self.app.current_theme)["background"],
                bgcolor=inks(self.app.current_theme)["foreground"],
                bold=True,
            )
        label = safe(cell.node.label)
        if cells == 1:
            return [Segment("▏" if not chosen else "█", Style(color=palette.ink, bgcolor=color))]
        text = fit(" " + label, cells - 1) if cells > 3 else " " * (cells - 1)
        return [
            Segment(text, ink),
            Segment(
                "▕" if cell_len(text) < cells else "",
                Style(color=palette.ink, bgcolor=ink.bgcolor.name if ink.bgcolor else color),
            ),
        ]

    def _status(self, width: int) -> Strip:
        style = self.get_component_rich_style("flame--status")
        node = self.chosen.node if self.chosen else self.zoomed[-1]
        total = self.root.total_ns if self.root else 1
        text = f" {units.duration(node.total_ns)} ({units.share(node.total_ns / (total or 1))}), itself {units.duration(node.self_ns)}  {node.label}"
        if node.code:
            text += f"   {node.code}"
        return Strip([Segment(fit(text, width), style)])

    # Moving

    def _choose(self, cell: FlameCell | None) -> None:
        if cell is not None:
            self.chosen = cell
            height, top = max(1, self.size.height - 1), int(self.scroll_offset.y)
            if not top <= cell.depth < top + height:
                self.scroll_to(y=max(0, cell.depth - height // 2), animate=False)
            self.refresh()

    def action_side(self, way: int) -> None:
        if self.chosen is not None:
            row = self.rows[self.chosen.depth]
            index = row.index(self.chosen) + way
            if 0 <= index < len(row):
                self._choose(row[index])

    def action_out(self) -> None:
        if self.chosen is not None and len(self.chosen.path) > 1:
            parent = self.chosen.path[-2]
            self._choose(next((cell for cell in self.cells if cell.node is parent), None))

    def action_into(self) -> None:
        if self.chosen is not None:
            children = {id(node) for node in self.chosen.node.children.values()}
            found = [cell for cell in self.cells if id(cell.node) in children]
            self._choose(max(found, key=lambda cell: cell.node.total_ns, default=None))

    def action_zoom(self) -> None:
        if self.chosen is not None and self.chosen.node is not self.zoomed[-1]:
            self.zoomed.append(self.chosen.node)
            self._lay_out()

    def action_unzoom(self) -> None:
        if len(self.zoomed) > 1:
            self.zoomed.pop()
            self._lay_out()

    def action_open(self) -> None:
        if self.chosen is not None and self.chosen.node.file:
            self.post_message(self.Opened(self.chosen.node.file, self.chosen.node.line))

    def on_click(self, event: events.Click) -> None:
        level = event.y - 1 + int(self.scroll_offset.y)
        if event.y < 1 or not 0 <= level < len(self.rows):
            return
        width = self.size.width
        for cell in self.rows[level]:
            if (
                round(cell.left * width)
                <= event.x
                < max(round(cell.right * width), round(cell.left * width) + 1)
            ):
                again = cell is self.chosen
                self._choose(cell)
                if again and event.chain > 1:
                    self.action_zoom()
                return


def hash_of(text: str) -> int:
    """A number that a text has in every process."""
    return sum(ord(character) * (index + 1) for index, character in enumerate(text))
