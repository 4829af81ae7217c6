"""The footer: the keys that work now; help, palette and quit always stay in view."""

from __future__ import annotations

from rich.text import Text
from textual import events
from textual.dom import DOMNode
from textual.widget import Widget

from explorer.tui.commands import key_text, own_bindings
from explorer.tui.theme import inks

ROOMY = 200
"""Cells from which on the minor keys stand behind the main ones."""
ALWAYS = ("help", "command_palette", "quit")


class KeyLine(Widget):
    """Keys and what they do, on one line, or on two where they do not fit and the terminal is tall enough. A click does
    the same as the key; on the dots of what had no room, it opens the help with all of them."""

    DEFAULT_CSS = """
    KeyLine { dock: bottom; height: auto; max-height: 2; background: $panel; color: $foreground; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._spans: list[tuple[int, int, int, DOMNode, str]] = []

    def on_mount(self) -> None:
        self.screen.bindings_updated_signal.subscribe(self, lambda _: self.refresh(layout=True))

    def _entries(self) -> tuple[list[tuple[str, str, DOMNode, str]], list[tuple[str, str, DOMNode, str]]]:
        own: dict[str, tuple[str, str, DOMNode, str]] = {}
        more: dict[str, tuple[str, str, DOMNode, str]] = {}
        always: dict[str, tuple[str, str, DOMNode, str]] = {}
        for node, binding, enabled, _ in self.screen.active_bindings.values():
            if not enabled or not binding.description:
                continue
            if binding.action.startswith("go("):
                continue  # the list of screens shows these
            entry = (binding.key_display or key_text(binding.key), binding.description, node, binding.action)
            if binding.action in ALWAYS:
                # The shortest key that works: q, or Ctrl+Q where letters are typed.
                known = always.get(binding.action)
                if known is None or len(entry[0]) < len(known[0]):
                    always[binding.action] = entry
            elif binding.show:
                own.setdefault(binding.description, entry)
            elif self.size.width >= ROOMY and any(binding is each for each in own_bindings(node)):
                more.setdefault(binding.description, entry)
        entries = {**own, **{title: entry for title, entry in more.items() if title not in own}}
        return list(entries.values()), [always[name] for name in ALWAYS if name in always]

    def _lines(self, width: int) -> list[Text]:
        css = inks(self.app.current_theme)
        own, always = self._entries()
        tail_length = sum(len(key) + len(title) + 3 for key, title, _, _ in always)
        rows = 2 if self.app.size.height >= 30 else 1
        lines: list[Text] = [Text(no_wrap=True, end="")]
        self._spans = []
        x = 0

        def put(key: str, title: str, node: DOMNode, action: str) -> None:
            nonlocal x
            line = lines[-1]
            start = x
            line.append(f" {key}", style=f"bold {css['accent']}")
            line.append(f" {title} ", style=css["foreground"])
            x += len(key) + len(title) + 3
            self._spans.append((len(lines) - 1, start, x, node, action))

        for entry in own:
            length = len(entry[0]) + len(entry[1]) + 3
            room = width - (tail_length + 2 if len(lines) == rows else 0)
            if x + length > room:
                if len(lines) == rows:
                    lines[-1].append(" …", style=css["muted"])
                    self._spans.append((len(lines) - 1, x, x + 2, self.app, "help"))
                    x += 2
                    break
                lines.append(Text(no_wrap=True, end=""))
                x = 0
            put(*entry)
        # The tail goes to the right end of the last line.
        if x + tail_length > width and len(lines) < rows:
            lines.append(Text(no_wrap=True, end=""))
            x = 0
        gap = max(0, width - x - tail_length)
        lines[-1].append(" " * gap)
        x += gap
        for entry in always:
            put(*entry)
        return lines

    def render(self) -> Text:
        return Text("\n").join(self._lines(self.size.width or 80))

    def get_content_height(self, container: object, viewport: object, width: int) -> int:
        return len(self._lines(width or 80))

    async def on_click(self, event: events.Click) -> None:
        for row, start, end, node, action in self._spans:
            if row == event.y and start <= event.x < end:
                await self.app.run_action(action, default_namespace=node)
                return
