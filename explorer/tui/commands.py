"""The command palette and the help, both made from the key bindings: an action that has a key is in all of them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from textual.app import App
from textual.binding import Binding
from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.dom import DOMNode
from textual.screen import Screen

if TYPE_CHECKING:
    from collections.abc import Iterable

_KEYS = {
    "question_mark": "?",
    "slash": "/",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "plus": "+",
    "minus": "-",
    "equals_sign": "=",
    "less_than_sign": "<",
    "greater_than_sign": ">",
    "full_stop": ".",
    "comma": ",",
    "colon": ":",
    "backspace": "Backspace",
    "apostrophe": "'",
    "escape": "Esc",
    "enter": "Enter",
    "space": "Space",
    "pageup": "PgUp",
    "pagedown": "PgDn",
    "up": "↑",
    "down": "↓",
    "left": "←",
    "right": "→",
    "home": "Home",
    "end": "End",
    "tab": "Tab",
    "shift+tab": "Shift+Tab",
}


def key_text(key: str) -> str:
    """A key as people write it."""
    return _KEYS.get(key, key.replace("ctrl+", "Ctrl+").replace("shift+", "Shift+").replace("alt+", "Alt+"))


def owners(app: App[Any], screen: Screen[Any]) -> Iterator[tuple[str, DOMNode]]:
    """Where bindings of a screen come from: the screen, each of its widgets that can have the focus, the app."""
    yield "This screen", screen
    seen: set[type] = set()
    for widget in screen.query("*"):
        own = type(widget).__module__.startswith("explorer.")
        if own and widget.can_focus and widget._bindings.key_to_bindings and type(widget) not in seen:
            seen.add(type(widget))
            yield getattr(widget, "HELP_TITLE", type(widget).__name__), widget
    yield "Everywhere", app


def described_bindings(app: App[Any], screen: Screen[Any]) -> list[tuple[str, str, str]]:
    """(where it works, keys, what it does) of every binding of a screen, keys of one action together."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for owner, node in owners(app, screen):
        for binding in own_bindings(node):
            if binding.description and not binding.system:
                keys = found.setdefault((owner, binding.action, binding.tooltip or binding.description), [])
                if (text := binding.key_display or key_text(binding.key)) not in keys:
                    keys.append(text)
    return [(owner, " ".join(keys), description) for (owner, _, description), keys in found.items()]


def own_bindings(node: DOMNode) -> Iterable[Binding]:
    """Bindings declared by our classes, not those of the library's base classes."""
    declared: set[str] = set()
    for base in type(node).__mro__:
        if base.__module__.startswith("explorer."):
            for binding in Binding.make_bindings(base.__dict__.get("BINDINGS", [])):
                declared.add(binding.key)
    for key, bindings in node._bindings.key_to_bindings.items():
        if key in declared:
            yield from bindings


class ActionCommands(Provider):
    """Every action of the current screen in the command palette."""

    def _commands(self) -> list[tuple[str, str, DOMNode, str]]:
        commands, seen = [], set()
        focused = self.screen.focused
        nodes: list[tuple[str, DOMNode]] = [("", focused)] if focused is not None else []
        for _, node in [*nodes, *owners(self.app, self.screen)]:
            for binding in own_bindings(node):
                title = binding.tooltip or binding.description
                if title and (title, binding.action) not in seen:
                    seen.add((title, binding.action))
                    commands.append((title, key_text(binding.key), node, binding.action))
        return commands

    async def _run(self, node: DOMNode, action: str) -> None:
        await self.app.run_action(action, default_namespace=node)

    async def discover(self) -> Hits:
        for title, key, node, action in self._commands():
            yield DiscoveryHit(title, partial(self._run, node, action), help=f"Key: {key}")

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for title, key, node, action in self._commands():
            if (score := matcher.match(title)) > 0:
                yield Hit(
                    score, matcher.highlight(title), partial(self._run, node, action), help=f"Key: {key}"
                )
