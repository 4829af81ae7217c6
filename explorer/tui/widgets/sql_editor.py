"""The editor of a SQL statement: coloured, with completion of tables and columns."""

from __future__ import annotations

from bisect import bisect_right

from rich.style import Style
from textual import events
from textual.binding import Binding
from textual.message import Message
from textual.widgets import TextArea
from textual.widgets.text_area import TextAreaTheme

from explorer.tui.sql_colors import sql_pieces
from explorer.tui.theme import inks, palette_of

MOST_COLOURED = 20_000
"""Characters beyond which a text is not coloured: it is coloured anew at every key."""


class SqlEditor(TextArea):
    """The editor of a statement."""

    HELP_TITLE = "In the editor"
    BINDINGS = [
        Binding("ctrl+r,f5", "run", "Run", key_display="^r", priority=True),
        Binding("escape", "leave", "Leave", tooltip="Leave the editor, to the results", priority=True),
        Binding(
            "tab", "complete", "Complete", tooltip="Complete the name of a table or column", priority=True
        ),
        Binding("ctrl+up,alt+up", "older", "Query before", key_display="^↑", priority=True),
        Binding("ctrl+down,alt+down", "newer", "Next query", key_display="^↓", priority=True, show=False),
    ]

    class Run(Message):
        """Run the text."""

    class Leave(Message):
        """The user is done editing."""

    class Recall(Message):
        """Show an older (-1) or newer (1) query."""

        def __init__(self, way: int) -> None:
            super().__init__()
            self.way = way

    class Completed(Message):
        """A word was completed: all candidates, and which one stands there."""

        def __init__(self, words: list[str], index: int) -> None:
            super().__init__()
            self.words, self.index = words, index

    def __init__(self, text: str, *, id: str | None = None) -> None:
        super().__init__(text, id=id, soft_wrap=True, show_line_numbers=False, tab_behavior="indent")
        self.cursor_blink = False  # a blinking cursor redraws for ever over ssh
        self._words: list[str] = []
        self._index = 0
        self._begin = 0

    # Colours

    def on_mount(self) -> None:
        self.watch(self.app, "theme", self._take_colors, init=True)

    def _take_colors(self) -> None:
        """The colours of the app's theme for the pieces of the text."""
        theme = self.app.current_theme
        css, categories = inks(theme), palette_of(theme).categories
        name = f"sql {theme.name}"
        styles = {
            "keyword": Style(color=css["primary"], bold=True),
            "function": Style(color=css["secondary"]),
            "relation": Style(color=css["accent"]),
            "string": Style(color=css["good"]),
            "number": Style(color=categories["compile"]),
            "comment": Style(color=css["muted"], italic=True),
        }
        self.register_theme(TextAreaTheme(name, syntax_styles=styles))
        self.theme = name
        self._build_highlight_map()
        self.refresh()

    def _build_highlight_map(self) -> None:
        """Colour by our own reading of the text: the library's needs a parser that is rarely installed."""
        self._line_cache.clear()
        self._highlights.clear()
        text = self.text
        if len(text) > MOST_COLOURED:
            return
        lines = text.split("\n")
        starts = [0]
        for line in lines:
            starts.append(starts[-1] + len(line) + 1)
        for begin, end, kind in sql_pieces(text):
            row = bisect_right(starts, begin) - 1
            while row < len(lines) and starts[row] < end:
                line = lines[row]
                first = len(line[: max(0, begin - starts[row])].encode())
                last = len(line[: end - starts[row]].encode())
                if last > first:
                    self._highlights[row].append((first, last, kind))
                row += 1

    # Keys

    def action_run(self) -> None:
        self.post_message(self.Run())

    def action_leave(self) -> None:
        self.post_message(self.Leave())

    def action_older(self) -> None:
        self.post_message(self.Recall(-1))

    def action_newer(self) -> None:
        self.post_message(self.Recall(1))

    def action_complete(self) -> None:
        """Complete the word before the cursor; again: the next candidate."""
        from explorer.analysis.completion import complete

        row, column = self.cursor_location
        lines = self.text.split("\n")
        cursor = sum(len(line) + 1 for line in lines[:row]) + column
        if self._words and self.text[self._begin : cursor] == self._words[self._index]:
            self._index = (self._index + 1) % len(self._words)
        else:
            self._begin, self._words = complete(self.text, cursor)
            self._index = 0
        if not self._words:
            self.insert("    ")
            return
        begin_row = self.text.count("\n", 0, self._begin)
        begin_column = self._begin - (self.text.rfind("\n", 0, self._begin) + 1)
        word = self._words[self._index]
        self.replace(word, (begin_row, begin_column), (row, column), maintain_selection_offset=False)
        self.move_cursor((begin_row, begin_column + len(word)))
        self.post_message(self.Completed(self._words, self._index))

    async def _on_key(self, event: events.Key) -> None:
        if event.key != "tab":
            self._words = []
        await super()._on_key(event)
