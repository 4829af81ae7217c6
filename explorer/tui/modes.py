"""The screens: their keys, titles and where their code lies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from textual.screen import Screen


def _screen(module: str, name: str) -> Callable[[], Screen[Any]]:
    """A screen loaded at its first use, so that the first picture waits for one screen only."""

    def make() -> Screen[Any]:
        from importlib import import_module

        screen: Screen[Any] = getattr(import_module(f"explorer.tui.screens.{module}"), name)()
        return screen

    return make


_CODE = {
    "overview": ("overview", "OverviewScreen"),
    "timeline": ("timeline", "TimelineScreen"),
    "source": ("source", "SourceScreen"),
    "ops": ("tables", "TablesScreen"),
    "findings": ("findings", "FindingsScreen"),
    "memory": ("memory", "MemoryScreen"),
    "ranks": ("ranks", "RanksScreen"),
    "counters": ("counters", "CountersScreen"),
    "sql": ("sql", "SqlScreen"),
    "compare": ("compare", "CompareScreen"),
}
MODULES = {name: f"explorer.tui.screens.{module}" for name, (module, _) in _CODE.items()}
"""Where the code of each screen lies, by its name"""

SCREENS: dict[str, tuple[str, str, str, Callable[[], Screen[Any]]]] = {
    "overview": ("1", "Overview", "Overview", _screen(*_CODE["overview"])),
    "timeline": ("2", "Timeline", "Time", _screen(*_CODE["timeline"])),
    "source": ("3", "Source", "Source", _screen(*_CODE["source"])),
    "ops": ("4", "Ops", "Ops", _screen(*_CODE["ops"])),
    "findings": ("5", "Findings", "Finds", _screen(*_CODE["findings"])),
    "memory": ("6", "Memory", "Mem", _screen(*_CODE["memory"])),
    "ranks": ("7", "Ranks", "Ranks", _screen(*_CODE["ranks"])),
    "counters": ("8", "Counters", "Count", _screen(*_CODE["counters"])),
    "sql": ("9", "SQL", "SQL", _screen(*_CODE["sql"])),
    "compare": ("0", "Compare", "Diff", _screen(*_CODE["compare"])),
}
"""Every screen by name: key, title, short title, how to make it."""
SCREEN_KEYS = {key: name for name, (key, _, _, _) in SCREENS.items()}
