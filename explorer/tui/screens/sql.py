"""SQL: a statement over the run's tables and views, with completion, history, results and export."""

from __future__ import annotations

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal
from textual.widgets import Input

from explorer.tui.export import export_result
from explorer.tui.screens.frame import ExplorerScreen, when_ready
from explorer.tui.text import safe
from explorer.tui.widgets.sql_panel import SqlPanel
from explorer.tui.widgets.table import Column, Table

FIRST = """SELECT file, line, cost_ns, device_ns, share, code
FROM lines ORDER BY cost_ns DESC LIMIT 20"""
SCHEMA = (Column("name", "Table or view", flex=1), Column("kind", "", width=5, rank=1))
WIDE = 110


class SqlScreen(ExplorerScreen):
    """SQL."""

    NAME = "sql"
    ABOUT = (
        "One read-only statement over every table and view of the run. Ctrl+R runs it, Esc cancels one that takes long, Tab "
        "completes names, Ctrl+↑ brings back earlier queries. Esc leaves the editor (then number keys change screens again, i "
        "returns to it), x exports the result to CSV, Parquet or JSON. The list on the left holds every table; Enter inserts "
        "its name."
    )
    BINDINGS = [
        Binding("i", "edit", "Edit", tooltip="Back to the editor"),
        Binding("r", "run", "Run", tooltip="Run the statement"),
        Binding("x", "export", "Export", tooltip="Export to CSV, Parquet or JSON"),
        Binding("b", "browse", "Tables", tooltip="Show or hide the list of tables"),
        Binding("slash", "filter", "Filter", key_display="/", tooltip="Filter the rows of the result"),
        Binding("y", "copy", "Copy row"),
        Binding("escape", "close_input", "Close the prompt", show=False),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._browse: bool | None = None

    def body(self) -> ComposeResult:
        with Horizontal(id="sql-body"):
            yield Table(SCHEMA, id="sql-schema")
            yield SqlPanel(FIRST, hint="x exports them", id="sql-main")
        yield Input(id="sql-input", classes="bottom-input")

    def on_mount(self) -> None:
        from explorer.analysis.completion import relation_docs

        self.query_one(Input).display = False
        schema = self.query_one("#sql-schema", Table)
        schema.set_rows(
            [{"name": doc.name, "kind": doc.kind, "doc": doc.doc} for doc in relation_docs().values()]
        )
        self._arrange()
        self.set_focus(self.panel.editor)

    @property
    def panel(self) -> SqlPanel:
        return self.query_one(SqlPanel)

    def on_resize(self) -> None:
        self._arrange()

    def _arrange(self) -> None:
        self.query_one("#sql-schema").display = (
            self.size.width >= WIDE if self._browse is None else self._browse
        )

    def load(self) -> None:
        self.panel.run_pending()

    @when_ready
    def show_sql(self, sql: str, note: str = "") -> None:
        """Put a statement into the editor and run it (asked by other screens)."""
        self.panel.show_sql(sql, note)
        self.panel.to_results()

    # The list of tables

    @on(Table.Highlighted, "#sql-schema")
    def _describe(self, event: Table.Highlighted) -> None:
        if event.row is not None and self.focused is event.table:
            self.panel.say(Text(f"{event.row['name']}: {safe(event.row['doc'])}"))

    @on(Table.Selected, "#sql-schema")
    def _insert(self, event: Table.Selected) -> None:
        from explorer.analysis.completion import relation_docs

        editor = self.panel.editor
        doc = relation_docs()[event.row["name"]]
        if not editor.text.strip() or editor.text == FIRST:
            # Numbers that only name a row stand last: they are what one looks at least.
            columns = sorted((column[0] for column in doc.columns), key=lambda name: name.endswith("_id"))
            editor.load_text(f"SELECT {', '.join(columns)}\nFROM {doc.name}\nLIMIT 100")
        else:
            editor.insert(doc.name)
        self.set_focus(editor)

    # Actions

    def action_run(self) -> None:
        self.panel.run_sql()

    def action_edit(self) -> None:
        self.set_focus(self.panel.editor)

    def action_browse(self) -> None:
        schema = self.query_one("#sql-schema", Table)
        self._browse = not schema.display
        self._arrange()
        self.set_focus(schema if self._browse else self.panel.table)

    def action_filter(self) -> None:
        self._prompt("Filter: words that the row must hold", "filter")

    def action_export(self) -> None:
        if self.panel.result is None:
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
            self.panel.table.set_filter(event.value)

    @on(Input.Submitted, "#sql-input")
    def _submitted(self, event: Input.Submitted) -> None:
        self.action_close_input()
        result, path = self.panel.result, event.value.strip()
        if event.input.has_class("export") and result is not None and path:
            self.ask(
                "export",
                lambda run: export_result(result, path),
                lambda said: self.app.notify(said, markup=False),
                lane="quick",
            )

    def action_close_input(self) -> None:
        self.query_one("#sql-input", Input).display = False
        self.panel.to_results()

    def action_copy(self) -> None:
        row = self.panel.table.row
        if row is not None:
            self.copy("\t".join(safe(str(value)) for value in row.values()), "the row")
