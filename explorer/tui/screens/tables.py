"""Ops, kernels, lines and modules as tables, and the flame graph of user code."""

from __future__ import annotations

from typing import Any

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.widgets import Input, TabbedContent, TabPane

from explorer.tui.screens.frame import ExplorerScreen
from explorer.tui.text import safe
from explorer.tui.widgets.flame import Flame
from explorer.tui.widgets.table import Column, Table

OPS = (
    Column("name", "Op", "name", flex=2),
    Column("calls", "calls", "count", width=9),
    Column("self_ns", "host self", "duration", width=9),
    Column("total_ns", "host total", "duration", width=10, rank=4),
    Column("mean_ns", "mean", "duration", width=8, rank=6),
    Column("p95_ns", "p95", "duration", width=8, rank=7),
    Column("share", "of host", "share", width=8, rank=2),
    Column("device_ns", "device", "duration", width=8, optional=True),
    Column("device_share", "of device", "share", width=9, rank=5, optional=True),
    Column("share_bar", "", "bar", width=8, rank=1),
    Column("per_step", "over steps", "spark", width=14, rank=3),
)
KERNELS = (
    Column("name", "Kernel", "name", flex=2),
    Column("category", "kind", width=10, rank=5),
    Column("device", "device", width=8, rank=6),
    Column("calls", "calls", "count", width=8),
    Column("total_ns", "total", "duration", width=8),
    Column("share", "share", "share", width=7),
    Column("share_bar", "", "bar", width=8, rank=1),
    Column("mean_ns", "mean", "duration", width=8, rank=3),
    Column("p95_ns", "p95", "duration", width=8, rank=7),
    Column("max_ns", "max", "duration", width=8, rank=8),
    Column("per_step", "over steps", "spark", width=14, rank=2),
)
LINES = (
    Column("where", "Line", "path", flex=1),
    Column("function", "Function", flex=1, rank=4),
    Column("code", "Code", flex=2, rank=3),
    Column("cost_ns", "host", "duration", width=8),
    Column("device_ns", "device", "duration", width=8, optional=True),
    Column("share", "of host", "share", width=8, rank=1),
    Column("share_bar", "", "bar", width=8, rank=5),
    Column("calls", "calls", "count", width=8, rank=6),
    Column("kernels", "kernels", "count", width=8, rank=7, optional=True),
)
MODULES = (
    Column("tree", "Module", flex=2),
    Column("class_name", "Class", flex=1, rank=3),
    Column("total_ns", "host", "duration", width=8),
    Column("self_ns", "host self", "duration", width=9, rank=2),
    Column("share", "of host", "share", width=8, rank=5),
    Column("device_ns", "device", "duration", width=8, optional=True),
    Column("device_share", "of device", "share", width=9, rank=6, optional=True),
    Column("share_bar", "", "bar", width=10, rank=4),
)


class TablesScreen(ExplorerScreen):
    """Ops, kernels, lines, modules, flame graph."""

    NAME = "ops"
    ABOUT = (
        "Where time goes by op, kernel, line and module, and as a flame graph of user code. "
        "/ filters, s sorts by the next column (or click a heading), Enter looks the row up: ops and kernels in the "
        "timeline, lines and modules in the source."
    )
    BINDINGS = [
        Binding("o", "tab('ops-tab')", "Ops"),
        Binding("r", "tab('kernels-tab')", "Kernels"),
        Binding("i", "tab('lines-tab')", "Lines"),
        Binding("m", "tab('modules-tab')", "Modules"),
        Binding("f", "tab('flame-tab')", "Flame", tooltip="Flame graph of user code"),
        Binding("slash", "filter", "Filter", key_display="/", tooltip="Filter rows by words"),
        Binding("escape", "clear", "Clear filter", show=False),
        Binding("y", "copy", "Copy row", tooltip="Copy the row, tab-separated"),
    ]

    def body(self) -> ComposeResult:
        with TabbedContent(id="tables"):
            with TabPane("Ops", id="ops-tab"):
                yield Table(OPS, id="ops", empty="This run holds no framework ops.")
            with TabPane("Kernels", id="kernels-tab"):
                yield Table(KERNELS, id="kernels", empty="No kernels: this run holds no device events.")
            with TabPane("Lines", id="lines-tab"):
                yield Table(
                    LINES, id="lines", empty="No source line is known in this run. Record with lines on."
                )
            with TabPane("Modules", id="modules-tab"):
                yield Table(
                    MODULES, id="modules", empty="No modules are known in this run. Record with modules on."
                )
            with TabPane("Flame graph", id="flame-tab"):
                yield Flame(id="flame")
        yield Input(placeholder="Filter: words that the row must hold", id="filter", classes="bottom-input")

    def on_mount(self) -> None:
        self.query_one("#filter").display = False
        self.set_focus(self.query_one("#ops", Table))

    def load(self) -> None:
        from explorer.analysis.flame import flame_tree
        from explorer.analysis.source_view import line_rows
        from explorer.analysis.table_rows import kernel_rows, module_rows, op_rows

        self.ask("ops", op_rows, lambda rows: self._fill("ops", rows), key="op_rows")
        self.ask("kernels", kernel_rows, lambda rows: self._fill("kernels", rows), key="kernel_rows")
        self.ask("lines", line_rows, self._fill_lines, key="line_rows")
        self.ask("modules", module_rows, lambda rows: self._fill("modules", rows), key="module_rows")
        self.ask("flame", flame_tree, self.query_one(Flame).show, key="flame")

    def _fill(self, name: str, rows: list[dict[str, Any]]) -> None:
        self.query_one(f"#{name}", Table).set_rows(rows)

    def _fill_lines(self, rows: list[dict[str, Any]]) -> None:
        shown = [
            {**row, "where": f"{row['file']}:{row['line']}", "share_bar": row["top_share"]} for row in rows
        ]
        self._fill("lines", shown)

    @property
    def current(self) -> Table | Flame:
        """The table or graph in front."""
        active = self.query_one(TabbedContent).active_pane
        assert active is not None
        found = active.query_one("Table, Flame")
        assert isinstance(found, Table | Flame)
        return found

    @on(TabbedContent.TabActivated)
    def _tab_shown(self) -> None:
        if not isinstance(self.focused, Input):
            self.set_focus(self.current)

    @on(Table.Selected, "#ops")
    @on(Table.Selected, "#kernels")
    def _find(self, event: Table.Selected) -> None:
        from explorer.tui.screens.timeline import TimelineScreen

        screen = self.explorer.go_to("timeline")
        assert isinstance(screen, TimelineScreen)
        screen.search(str(event.row["name"]))

    @on(Table.Selected, "#lines")
    def _open_line(self, event: Table.Selected) -> None:
        self._show_source(event.row["file"], event.row["line"])

    @on(Flame.Opened)
    def _open_frame(self, event: Flame.Opened) -> None:
        self._show_source(event.file, event.line)

    def _show_source(self, file: str, line: int) -> None:
        from explorer.tui.screens.source import SourceScreen

        screen = self.explorer.go_to("source")
        assert isinstance(screen, SourceScreen)
        screen.show_line(file, line)

    def action_tab(self, name: str) -> None:
        self.query_one(TabbedContent).active = name
        self.set_focus(self.current)

    def action_filter(self) -> None:
        box = self.query_one("#filter", Input)
        box.display = True
        self.set_focus(box)

    def action_clear(self) -> None:
        box = self.query_one("#filter", Input)
        box.value = ""
        box.display = False
        self.set_focus(self.current)

    @on(Input.Changed, "#filter")
    def _filter(self, event: Input.Changed) -> None:
        for table in self.query("TabPane Table").results(Table):
            table.set_filter(event.value)

    @on(Input.Submitted, "#filter")
    def _filter_done(self, event: Input.Submitted) -> None:
        event.input.display = bool(event.value)
        self.set_focus(self.current)

    def action_copy(self) -> None:
        current = self.current
        if isinstance(current, Table) and current.row is not None:
            cells = [
                column.text(current.row) for column in current.columns if column.kind not in ("bar", "spark")
            ]
            self.copy(safe("\t".join(cells)).replace("␉", "\t"), "the row")
