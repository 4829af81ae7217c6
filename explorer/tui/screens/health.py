"""Health: what is missing, broken, repaired or doubtful in the run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from explorer.tui.text import safe
from explorer.tui.theme import inks

if TYPE_CHECKING:
    from explorer.tui.app import ExplorerApp


class HealthScreen(ModalScreen[None]):
    """The run's health, worst first."""

    DEFAULT_CSS = """
    HealthScreen { align: center middle; }
    HealthScreen > Vertical {
        width: 96; max-width: 96%; height: auto; max-height: 90%; padding: 1 2;
        border: round $primary; border-title-color: $primary; border-title-style: bold; background: $surface;
    }
    HealthScreen VerticalScroll { height: auto; max-height: 100%; scrollbar-size-vertical: 1; }
    """
    BINDINGS = [Binding("escape,h,enter", "dismiss", "Close"), Binding("q", "app.quit", "Quit")]

    def compose(self) -> ComposeResult:
        with Vertical() as box:
            box.border_title = "Health of the run"
            box.border_subtitle = "Esc closes"
            with VerticalScroll():
                yield Static("Loading…", id="health-text")

    def on_mount(self) -> None:
        data = cast("ExplorerApp", self.app).data
        if data is not None:
            data.ask(self, "health", lambda run: run.health().rows(), self._show, key="health")

    def _show(self, rows: list[dict[str, Any]]) -> None:
        css = inks(self.app.current_theme)
        styles = {
            "error": ("✖", css["bad"]),
            "warning": ("▲", css["warn"]),
            "info": ("·", css["muted"]),
        }
        text = Text()
        if not rows:
            text.append("● Nothing is missing, broken or doubtful in this run.", style=css["good"])
        for row in rows:
            mark, color = styles.get(row["severity"], styles["info"])
            text.append(f"{mark} {safe(row['message'])}", style=color)
            text.append(f"  {row['kind']}, {row['count']:,}", style=css["muted"])
            if row.get("rank") is not None:
                text.append(f", rank {row['rank']}", style=css["muted"])
            text.append("\n")
            if row.get("remedy"):
                text.append(f"  → {safe(row['remedy'])}\n")
            if row.get("affects"):
                text.append(f"  Less certain for it: {safe(row['affects'])}\n", style=css["muted"])
            text.append("\n")
        text.rstrip()
        self.query_one("#health-text", Static).update(text)
