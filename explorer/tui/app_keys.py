"""The keys that work on every screen."""

from __future__ import annotations

from textual.binding import Binding

from explorer.tui.modes import SCREENS

APP_KEYS: tuple[Binding, ...] = (
    *(
        Binding(key, f"go('{name}')", f"Go to {title}", show=False)
        for name, (key, title, _, _) in SCREENS.items()
    ),
    Binding("K", "all_keys", "Keys", tooltip="Show every key that works here, or a line of them"),
    Binding(
        "f2",
        "all_keys",
        "Keys",
        key_display="F2",
        tooltip="Show every key that works here, or a line of them",
        priority=True,
    ),
    Binding(
        "question_mark", "help", "Help", key_display="?", tooltip="What this screen answers, and its keys"
    ),
    Binding(
        "f1",
        "help",
        "Help",
        key_display="F1",
        tooltip="What this screen answers, and its keys",
        priority=True,
    ),
    Binding("ctrl+p", "command_palette", "Palette", key_display="^p", priority=True),
    Binding("T", "next_theme", "Theme"),
    Binding("ctrl+s", "save_picture", "Save this screen as SVG", show=False),
    Binding("ctrl+l", "redraw", "Draw the screen anew", show=False),
    Binding("q", "quit", "Quit"),
    Binding("ctrl+q", "quit", "Quit", key_display="^q", show=False, priority=True),
)
