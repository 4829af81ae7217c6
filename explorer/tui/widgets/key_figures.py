"""Key figures side by side: title, number, and a sentence that says what it means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.widgets import Static

from explorer.tui.text import safe
from explorer.tui.theme import inks

if TYPE_CHECKING:
    from explorer.analysis.key_figures import KeyFigure


class KeyFigures(Horizontal):
    """As many figures as fit, each a third of the width."""

    DEFAULT_CSS = """
    KeyFigures { height: 5; padding: 0 0; }
    KeyFigures Static { width: 1fr; height: 5; padding: 0 1; }
    """
    COUNT = 3

    def compose(self) -> ComposeResult:
        for _ in range(self.COUNT):
            yield Static()

    def show(self, figures: Sequence[KeyFigure]) -> None:
        css = inks(self.app.current_theme)
        tones = {"good": css["good"], "bad": css["warn"], "plain": css["foreground"]}
        for index, slot in enumerate(self.query(Static)):
            slot.display = index < len(figures)
            if index < len(figures):
                figure = figures[index]
                text = Text()
                text.append(safe(figure.title) + "\n", style=css["muted"])
                text.append(safe(figure.value) + "\n", style=f"bold {tones[figure.tone]}")
                text.append(safe(figure.sentence), style=css["muted"])
                slot.update(text)
