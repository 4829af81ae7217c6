"""SQL: an editor over the run's tables and views, with completion, history, results and export."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from rich.text import Text
from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.widgets import Input, Static, TextArea

from explorer.tui import units
from explorer.tui.export import export_result
from explorer.tui.history import History
from explorer.tui.screens.frame import ExplorerScreen, when_ready
from explorer.tui.text import safe
from explorer.tui.theme import inks
from explorer.tui.widgets.table import Column, Table

if TYPE_CHECKING:
    from explorer.analysis.result import Result
    from explorer.analysis.run import Run

FIRST = "SELECT * FROM lines ORDER BY cost_ns DESC LIMIT 20"
TIMEOUT_SECONDS = 60.0
SCHEMA = (Column("name", "Table or view", flex=1), Column("kind", "", width=5, rank=1))


class SqlEditor(TextArea):
    """The editor of a statement."""

    HELP_TITLE = "In the editor"
    BINDINGS = [
        Binding("ctrl+r,f5", "run", "Run", key_display="^r", priority=True),
        Binding("ctrl+up,alt+up", "older", "Query before", key_display="^↑", priority=True),
        Binding("ctrl+down,alt+down", "newer", "Next query", key_display="^↓", priority=True, show=False),
        Binding("tab", "complete", "Complete", priority=True),
        Binding("escape", "leave", "To the results", priority=True),
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


class SqlScreen(ExplorerScreen):
    """SQL."""

    NAME = "sql"
    ABOUT = (
        "One read-only statement over every table and view of the run. Ctrl+R runs it, Tab completes names, Ctrl+↑ brings "
        "back earlier queries, Esc leaves the editor (then number keys change screens again, i returns to it), x exports "
        "the result to CSV, Parquet or JSON. The list on the left holds every table; Enter inserts its name."
    )
    BINDINGS = [
        Binding("i", "edit", "Edit", tooltip="Back to the editor"),
        Binding("r", "run", "Run", tooltip="Run the statement"),
        Binding("x", "export", "Export", tooltip="Export to CSV, Parquet or JSON"),
        Binding("b", "browse", "Tables", tooltip="Show or hide the list of tables"),
        Binding("slash", "filter", "Filter", key_display="/", tooltip="Filter the rows of the result"),
        Binding("y", "copy", "Copy row"),
        Binding("escape", "cancel", "Cancel", show=False),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._result: Result | None = None
        self._began = 0.0
        self._history = History()
        self._browse: bool | None = None
        self._pending: str | None = None

    def body(self) -> ComposeResult:
        with Horizontal(id="sql-body"):
            yield Table(SCHEMA, id="sql-schema")
            with Vertical(id="sql-main"):
                yield SqlEditor(FIRST, id="sql-editor")
                yield Static(id="sql-status", classes="status")
                yield Table([Column("", "")], id="sql-result", empty="No rows.")
        yield Input(id="sql-input", classes="bottom-input")

    def on_mount(self) -> None:
        from explorer.analysis.completion import relation_docs

        super().on_mount()
        self.query_one(Input).display = False
        result = self.query_one("#sql-result", Table)
        result.loading_text = "Ctrl+R runs the query."
        schema = self.query_one("#sql-schema", Table)
        schema.set_rows(
            [{"name": doc.name, "kind": doc.kind, "doc": doc.doc} for doc in relation_docs().values()]
        )
        self._arrange()
        self._status(Text("Ctrl+R runs · Tab completes · Ctrl+↑ earlier queries · Esc leaves the editor"))
        self.set_focus(self.query_one(SqlEditor))

    def on_resize(self) -> None:
        self._arrange()

    def _arrange(self) -> None:
        self.query_one("#sql-schema").display = (
            self.size.width >= 110 if self._browse is None else self._browse
        )

    def load(self) -> None:
        if self._pending is not None:
            self._run(self._pending)

    def _status(self, text: Text) -> None:
        text.no_wrap = True
        self.query_one("#sql-status", Static).update(text)

    @when_ready
    def show_sql(self, sql: str, note: str = "") -> None:
        """Put a statement into the editor and run it (asked by other screens)."""
        editor = self.query_one(SqlEditor)
        editor.load_text((f"-- {safe(note)}\n" if note else "") + sql)
        self._run(editor.text)
        self.set_focus(self.query_one("#sql-result", Table))

    # Running

    @on(SqlEditor.Run)
    def action_run(self) -> None:
        self._run(self.query_one(SqlEditor).text)

    def _run(self, text: str) -> None:
        if self.explorer.data is None:
            self._pending = text
            return
        self._pending = None
        self._began = time.monotonic()
        self._history.add(text)
        self._status(Text("Running…"))

        def query(run: Run) -> Result:
            return run.sql(text, timeout_s=TIMEOUT_SECONDS)

        self.ask("sql", query, self._show, failed=self._failed)

    def _failed(self, message: str) -> None:
        self._status(Text("✖ " + safe(message), style=inks(self.app.current_theme)["bad"]))
        self.app.notify(message, severity="error", markup=False, timeout=8)

    def _show(self, result: Result) -> None:
        self._result = result
        rows = result.rows()
        table = self.query_one("#sql-result", Table)
        table.sort_key = None
        table.set_columns(result_columns(rows, result.columns))
        table.set_rows(rows)
        table.move_to(0)
        took = units.duration((time.monotonic() - self._began) * 1e9)
        count = f"{len(rows):,} row{'' if len(rows) == 1 else 's'}"
        text = Text(f"{count} in {took}")
        if result.truncated:
            text.append(", cut: there are more", style=inks(self.app.current_theme)["warn"])
        text.append("   x exports them", style=inks(self.app.current_theme)["muted"])
        self._status(text)

    @on(SqlEditor.Leave)
    def _leave(self) -> None:
        self.set_focus(self.query_one("#sql-result", Table))

    @on(SqlEditor.Recall)
    def _recall(self, event: SqlEditor.Recall) -> None:
        editor = self.query_one(SqlEditor)
        text = self._history.older(editor.text) if event.way < 0 else self._history.newer()
        if text is not None:
            editor.load_text(text)
            editor.move_cursor(editor.document.end)

    @on(SqlEditor.Completed)
    def _completed(self, event: SqlEditor.Completed) -> None:
        css = inks(self.app.current_theme)
        text = Text()
        first = max(0, event.index - 3)
        for index, word in enumerate(event.words[first : first + 12], first):
            text.append(word, style=f"bold {css['accent']}" if index == event.index else css["muted"])
            text.append("  ")
        if len(event.words) > first + 12:
            text.append(f"and {len(event.words) - first - 12} more", style=css["faint"])
        self._status(text)

    # The list of tables

    @on(Table.Highlighted, "#sql-schema")
    def _describe(self, event: Table.Highlighted) -> None:
        if event.row is not None and self.focused is event.table:
            self._status(Text(f"{event.row['name']}: {safe(event.row['doc'])}"))

    @on(Table.Selected, "#sql-schema")
    def _insert(self, event: Table.Selected) -> None:
        from explorer.analysis.completion import relation_docs

        editor = self.query_one(SqlEditor)
        doc = relation_docs()[event.row["name"]]
        if not editor.text.strip() or editor.text == FIRST:
            editor.load_text(f"SELECT {', '.join(c[0] for c in doc.columns)}\nFROM {doc.name}\nLIMIT 100")
        else:
            editor.insert(doc.name)
        self.set_focus(editor)

    # Actions

    def action_edit(self) -> None:
        self.set_focus(self.query_one(SqlEditor))

    def action_browse(self) -> None:
        schema = self.query_one("#sql-schema", Table)
        self._browse = not schema.display
        self._arrange()
        self.set_focus(schema if self._browse else self.query_one("#sql-result", Table))

    def action_filter(self) -> None:
        self._prompt("Filter: words that the row must hold", "filter")

    def action_export(self) -> None:
        if self._result is None:
            self.app.notify("Run a query first.", timeout=2)
            return
        self._prompt("Export to: FILE.csv, FILE.parquet or FILE.json", "export", "result.csv")

    def _prompt(self, text: str, purpose: str, value: str = "") -> None:
        box = self.query_one("#sql-input", Input)
        box.placeholder, box.value, box.display = text, value, True
        box.set_classes(f"bottom-input {purpose}")
        self.set_focus(box)

    @on(Input.Changed, "#sql-input")
    def _typed(self, event: Input.Changed) -> None:
        if event.input.has_class("filter"):
            self.query_one("#sql-result", Table).set_filter(event.value)

    @on(Input.Submitted, "#sql-input")
    def _submitted(self, event: Input.Submitted) -> None:
        event.input.display = False
        self.set_focus(self.query_one("#sql-result", Table))
        result, path = self._result, event.value.strip()
        if event.input.has_class("export") and result is not None and path:
            self.ask(
                "export",
                lambda run: export_result(result, path),
                lambda said: self.app.notify(said, markup=False),
            )

    def action_cancel(self) -> None:
        box = self.query_one("#sql-input", Input)
        box.display = False
        self.set_focus(self.query_one("#sql-result", Table))

    def action_copy(self) -> None:
        table = self.query_one("#sql-result", Table)
        if table.row is not None:
            self.copy("\t".join(safe(str(value)) for value in table.row.values()), "the row")


def result_columns(rows: list[dict[str, Any]], names: list[str]) -> list[Column]:
    """Columns of a result: the kind from the name's unit and the values, the width from the longest of the first rows."""
    columns = []
    for name in names:
        values = [row[name] for row in rows[:200] if row[name] is not None]
        numeric = bool(values) and all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
        kind = "number" if numeric else "text"
        if numeric and name.endswith("_ns") and not name.startswith(("start", "end", "timestamp", "at_")):
            kind = "duration"
        elif numeric and (name.endswith("_share") or name == "share"):
            kind = "share"
        elif numeric and name.endswith("_bytes"):
            kind = "size"
        column = Column(name, name, kind)
        longest = max((len(column.text(row)) for row in rows[:200]), default=0)
        columns.append(Column(name, name, kind, width=max(4, min(60, max(longest, len(name) + 1)))))
    return columns
