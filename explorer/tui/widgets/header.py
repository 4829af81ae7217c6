"""The two lines on top: which run this is and how healthy it is, and the screens with their number keys."""

from __future__ import annotations

from rich.cells import cell_len
from rich.text import Text
from textual import events
from textual.reactive import reactive
from textual.widget import Widget

from explorer.tui.text import fit_path, safe
from explorer.tui.theme import inks


class RunLine(Widget):
    """The run's name, what it holds, and its health."""

    DEFAULT_CSS = """
    RunLine { height: 1; background: $panel; color: $foreground; }
    """
    run_name = reactive("")
    facts = reactive("")
    warnings = reactive(-1)
    errors = reactive(0)

    def render(self) -> Text:
        css = inks(self.app.current_theme)
        if self.warnings < 0:
            health, color = "", ""
        elif self.errors:
            health, color = f"✖ {self.errors} error{'s' * (self.errors > 1)} ", css["bad"]
        elif self.warnings:
            health, color = f"▲ {self.warnings} warning{'s' * (self.warnings > 1)} ", css["warn"]
        else:
            health, color = "● healthy ", css["good"]
        left = Text(no_wrap=True, end="")
        left.append(" neuron-explorer ", style=f"bold {css['primary']}")
        room = self.size.width - cell_len(left.plain) - cell_len(health) - 2
        name = fit_path(self.run_name, max(8, room))
        left.append(name, style="bold")
        facts = safe(self.facts)
        room -= cell_len(name) + 2
        if facts and room >= 12:
            left.append(
                "  " + (facts if cell_len(facts) <= room else facts[: room - 1] + "…"), style=css["muted"]
            )
        gap = self.size.width - cell_len(left.plain) - cell_len(health)
        left.append(" " * max(1, gap))
        left.append(health, style=color)
        return left


class ModeBar(Widget):
    """The screens by number; click or press the number."""

    DEFAULT_CSS = """
    ModeBar { height: 1; background: $surface; color: $ink-muted; }
    """

    def __init__(self, modes: list[tuple[str, str, str, str]], current: str) -> None:
        """`modes`: (name, key, title, short title)."""
        super().__init__()
        self.modes = modes
        self.current = current
        self._spans: list[tuple[int, int, str]] = []

    def mark(self, name: str) -> None:
        """Show this screen as the one in front."""
        self.current = name
        self.refresh()

    def render(self) -> Text:
        css = inks(self.app.current_theme)
        width = self.size.width
        for titles, gap in (
            ([m[2] for m in self.modes], 3),
            ([m[2] for m in self.modes], 2),
            ([m[3] for m in self.modes], 2),
            ([m[3] for m in self.modes], 1),
            ([m[3] if m[0] == self.current else "" for m in self.modes], 1),
        ):
            length = sum(len(key) + 1 + len(title) + gap for (_, key, _, _), title in zip(self.modes, titles))
            if length <= width:
                break
        line = Text(no_wrap=True, end="", overflow="crop")
        self._spans = []
        x = 0
        pad = 1 if gap > 1 else 0
        for (name, key, _, _), title in zip(self.modes, titles):
            text = f"{' ' * pad}{key} {title}".rstrip() + " " * pad
            start = x
            if name == self.current:
                line.append(text, style=f"bold {css['background']} on {css['primary']}")
            else:
                line.append(" " * pad)
                line.append(key, style=f"bold {css['accent']}")
                line.append(text[pad + len(key) :])
            x += len(text)
            if gap != 2:
                line.append(" ")
                x += 1
            self._spans.append((start, x, name))
        return line

    def on_click(self, event: events.Click) -> None:
        for start, end, name in self._spans:
            if start <= event.x < end:
                self.app.switch_mode(name)
