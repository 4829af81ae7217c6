"""Help: what this screen answers, and every key that works on it."""

from __future__ import annotations

from rich.table import Table as Grid
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen, Screen
from textual.widgets import Static

from explorer.tui.commands import described_bindings
from explorer.tui.theme import inks


class HelpScreen(ModalScreen[None]):
    """Made from the bindings themselves, so that no key is missing."""

    DEFAULT_CSS = """
    HelpScreen { align: center middle; }
    HelpScreen > Vertical {
        width: 84; max-width: 96%; height: auto; max-height: 92%;
        border: round $primary; border-title-color: $primary; border-title-style: bold;
        background: $surface; padding: 1 2;
    }
    HelpScreen VerticalScroll { height: auto; max-height: 100%; scrollbar-size-vertical: 1; }
    HelpScreen .about { margin-bottom: 1; color: $foreground; }
    """
    BINDINGS = [
        Binding("escape,question_mark,enter", "dismiss", "Close"),
        Binding("q", "app.quit", "Quit"),
        Binding("down,j", "scroll(1)", "Down", show=False),
        Binding("up,k", "scroll(-1)", "Up", show=False),
    ]

    def __init__(self, about: str, asked_by: Screen) -> None:
        super().__init__()
        self.about = about
        self.asked_by = asked_by

    def compose(self) -> ComposeResult:
        with Vertical() as box:
            box.border_title = "Help"
            box.border_subtitle = "Esc closes"
            with VerticalScroll():
                yield Static(Text(self.about), classes="about")
                yield Static(id="keys")

    def on_mount(self) -> None:
        css = inks(self.app.current_theme)
        grid = Grid.grid(padding=(0, 2), expand=False)
        grid.add_column(justify="right", style=f"bold {css['accent']}", no_wrap=True)
        grid.add_column()
        heading = None
        for owner, keys, description in described_bindings(self.app, self.asked_by):
            if owner != heading:
                if heading is not None:
                    grid.add_row("", "")
                heading = owner
                grid.add_row("", Text(owner, style=f"bold {css['primary']}"))
            grid.add_row(keys, Text(description))
        self.query_one("#keys", Static).update(grid)

    def action_scroll(self, by: int) -> None:
        self.query_one(VerticalScroll).scroll_relative(y=by, animate=False)
