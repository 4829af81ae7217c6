"""The footer: the keys that work now, all of them on request; help, palette and quit always stay in view."""

from __future__ import annotations

from rich.text import Text
from textual import events
from textual.dom import DOMNode
from textual.reactive import reactive
from textual.widget import Widget

from explorer.tui.commands import key_text, own_bindings
from explorer.tui.theme import inks

ROOMY = 200
"""Cells from which on the minor keys stand behind the main ones."""
ALWAYS = ("all_keys", "help", "command_palette", "quit")
MOST_ROWS = 10

Entry = tuple[str, str, DOMNode, str]
"""Key, what it does, whose binding it is, its action"""


class KeyLine(Widget):
    """Keys and what they do, on one line, or on two where they do not fit and the terminal is tall enough; on as many as
    every key of the screen needs while `all_keys` is on. A click does the same as the key; on the dots of what had no room,
    it shows the rest."""

    DEFAULT_CSS = """
    KeyLine { dock: bottom; height: auto; max-height: 10; background: $panel; color: $foreground; }
    """
    all_keys = reactive(False, layout=True)

    def __init__(self) -> None:
        super().__init__()
        self._spans: list[tuple[int, int, int, DOMNode, str]] = []
        self._kept: tuple[object, list[Text]] | None = None

    def on_mount(self) -> None:
        self.screen.bindings_updated_signal.subscribe(self, self._keys_changed)

    def _keys_changed(self, _: object) -> None:
        """Draw the keys anew where they are others; lay the screen out anew only where they need more lines or fewer."""
        before, self._kept = self._kept, None
        now = self._lines(self.size.width or 80)
        if before is None or len(before[1]) != len(now):
            self.refresh(layout=True)
        elif before[1] != now:
            self.refresh()

    def _entries(self, minor: bool) -> tuple[list[Entry], list[Entry]]:
        own: dict[str, Entry] = {}
        more: dict[str, Entry] = {}
        always: dict[str, Entry] = {}
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
            elif minor and any(binding is each for each in own_bindings(node)):
                more.setdefault(binding.description, entry)
        entries = {**own, **{title: entry for title, entry in more.items() if title not in own}}
        return list(entries.values()), [always[name] for name in ALWAYS if name in always]

    def _lines(self, width: int) -> list[Text]:
        """The lines, kept until keys, room or colours change: a picture asks for them several times."""
        now = (width, self.app.size.height, self.app.theme, self.all_keys)
        if self._kept is None or self._kept[0] != now:
            minor = self.all_keys or width >= ROOMY
            rows = MOST_ROWS if self.all_keys else 2 if self.app.size.height >= 30 else 1
            self._kept = now, self._set(width, rows, *self._entries(minor))
        return self._kept[1]

    def _set(self, width: int, rows: int, own: list[Entry], always: list[Entry]) -> list[Text]:
        """Entries side by side on at most so many lines, the last ones at the right end."""
        css = inks(self.app.current_theme)
        tail_length = sum(len(key) + len(title) + 3 for key, title, _, _ in always)
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
                    self._spans.append((len(lines) - 1, x, x + 2, self.app, "all_keys"))
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
