"""A statement with its answer: editor, what is happening, results; it runs, is cancelled, remembered and exported."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, cast

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.timer import Timer
from textual.widgets import Static

from explorer.tui import units
from explorer.tui.history import History
from explorer.tui.text import safe
from explorer.tui.theme import inks
from explorer.tui.widgets.sql_editor import SqlEditor
from explorer.tui.widgets.table import Column, Table

if TYPE_CHECKING:
    from explorer.analysis.result import Result
    from explorer.analysis.run import Run
    from explorer.tui.app import ExplorerApp

TIMEOUT_SECONDS = 600.0
SHOWN_WORDS = 12


class SqlPanel(Vertical):
    """Runs one read-only statement at a time. A statement given before the run is open waits for it."""

    BINDINGS = [
        Binding(
            "ctrl+c,escape", "stop", "Cancel", key_display="Esc", tooltip="Cancel the query", priority=True
        )
    ]

    def __init__(self, sql: str, *, hint: str, id: str | None = None) -> None:
        """`hint`: what can be done with results, shown behind their number."""
        super().__init__(id=id)
        self._sql = sql
        self._hint = hint
        self.result: Result | None = None
        self._began: float | None = None
        self._clock: Timer | None = None
        self._history = History()
        self._pending: str | None = None

    def compose(self) -> ComposeResult:
        yield SqlEditor(self._sql, id="sql-editor")
        yield Static(id="sql-status", classes="status")
        yield Table([Column("", "")], id="sql-result", empty="No rows.")

    def on_mount(self) -> None:
        self.table.loading_text = "Ctrl+R runs the query."
        self.say(Text("Ctrl+R runs · Tab completes · Ctrl+↑ earlier · Esc leaves, then q quits"))

    @property
    def editor(self) -> SqlEditor:
        return self.query_one(SqlEditor)

    @property
    def table(self) -> Table:
        return self.query_one("#sql-result", Table)

    def say(self, text: Text) -> None:
        """Show a line between editor and results."""
        text.no_wrap = True
        self.query_one("#sql-status", Static).update(text)

    # Running

    @property
    def running(self) -> bool:
        return self._began is not None

    def show_sql(self, sql: str, note: str = "") -> None:
        """Put a statement into the editor and run it."""
        self.editor.load_text((f"-- {safe(note)}\n" if note else "") + sql)
        self.run_sql()

    def run_pending(self) -> None:
        """The run is open now, or has grown."""
        if self._pending is not None:
            self._run(self._pending)

    @on(SqlEditor.Run)
    def run_sql(self) -> None:
        """Run what stands in the editor; a statement that is still running is cancelled."""
        self._run(self.editor.text)

    def _run(self, text: str) -> None:
        data = cast("ExplorerApp", self.app).data
        if data is None:
            self._pending = text
            return
        self._pending = None
        self._history.add(text)
        self._began = time.monotonic()
        self._show_clock()
        if self._clock is None:
            self._clock = self.set_interval(0.5, self._show_clock)

        def query(run: Run) -> tuple[Result, list[dict[str, Any]], list[Column]]:
            result = run.sql(text, timeout_s=TIMEOUT_SECONDS)
            rows = result.rows()
            return result, rows, result_columns(rows, result.columns)

        data.ask(self, "sql", query, lambda answer: self._show(*answer), failed=self._failed, lane="sql")
        self.refresh_bindings()

    def refresh_bindings(self) -> None:
        """Whether there is something to cancel has changed."""
        self.screen.refresh_bindings()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return self.running if action == "stop" else True

    def _show_clock(self) -> None:
        if self._began is not None:
            seconds = int(time.monotonic() - self._began)
            text = Text("Running…" + (f" {seconds} s" if seconds else ""))
            text.append("   Esc cancels", style=inks(self.app.current_theme)["muted"])
            self.say(text)

    def _ended(self) -> str:
        """The query is over; returns how long it took."""
        took = units.duration((time.monotonic() - (self._began or 0.0)) * 1e9)
        self._began = None
        if self._clock is not None:
            self._clock.stop()
            self._clock = None
        self.refresh_bindings()
        return took

    def action_stop(self) -> None:
        """Cancel the query that is running."""
        data = cast("ExplorerApp", self.app).data
        if data is not None and self.running:
            data.cancel(self, "sql", "sql")
            self.say(Text(f"Cancelled after {self._ended()}."))

    def _failed(self, message: str) -> None:
        self._ended()
        self.say(Text("✖ " + safe(message), style=inks(self.app.current_theme)["bad"]))
        self.app.notify(message, severity="error", markup=False, timeout=8)

    def _show(self, result: Result, rows: list[dict[str, Any]], columns: list[Column]) -> None:
        took = self._ended()
        self.result = result
        self.table.sort_key = None
        self.table.set_columns(columns)
        self.table.set_rows(rows)
        self.table.move_to(0)
        css = inks(self.app.current_theme)
        text = Text(f"{len(rows):,} row{'' if len(rows) == 1 else 's'} in {took}")
        if result.truncated:
            text.append(", cut: there are more", style=css["warn"])
        text.append(f"   {self._hint}", style=css["muted"])
        self.say(text)

    # Editing

    @on(SqlEditor.Leave)
    def to_results(self) -> None:
        """Put the focus on the results."""
        self.screen.set_focus(self.table)

    @on(SqlEditor.Recall)
    def _recall(self, event: SqlEditor.Recall) -> None:
        text = self._history.older(self.editor.text) if event.way < 0 else self._history.newer()
        if text is not None:
            self.editor.load_text(text)
            self.editor.move_cursor(self.editor.document.end)

    @on(SqlEditor.Completed)
    def _completed(self, event: SqlEditor.Completed) -> None:
        css = inks(self.app.current_theme)
        text = Text()
        first = max(0, event.index - 3)
        for index, word in enumerate(event.words[first : first + SHOWN_WORDS], first):
            text.append(word, style=f"bold {css['accent']}" if index == event.index else css["muted"])
            text.append("  ")
        rest = len(event.words) - first - SHOWN_WORDS
        if rest > 0:
            text.append(f"and {rest} more", style=css["faint"])
        self.say(text)


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
