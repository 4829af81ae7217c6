"""A line of pieces, of which only those stand there that fit whole: a number that is cut in the middle reads as another one."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text
from textual.widget import Widget

from explorer.tui.theme import inks


class Pieces(Widget):
    """A beginning, and pieces behind it in the order of their weight; the dots say that some had no room."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._first = Text()
        self._pieces: Sequence[Text] = ()

    def show(self, first: Text | str, pieces: Sequence[Text] = ()) -> None:
        """Show `first`, and of the pieces as many as there is room for."""
        self._first, self._pieces = Text(first) if isinstance(first, str) else first, pieces
        self.refresh()

    def render(self) -> Text:
        width = self.content_size.width
        line = self._first.copy()
        line.no_wrap, line.end = True, ""
        for index, piece in enumerate(self._pieces):
            dots = 0 if index == len(self._pieces) - 1 else 2
            if line.cell_len + piece.cell_len + dots > width:
                line.append(" …", style=f"not bold {inks(self.app.current_theme)['muted']}")
                break
            line.append_text(piece)
        return line
