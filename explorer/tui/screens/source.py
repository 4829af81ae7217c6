"""Source: files by cost, code with what each line costs, and what a line ran, who called it and what it called."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal
from textual.widgets import TabbedContent, TabPane

from explorer.tui.editor import open_editor
from explorer.tui.screens.frame import ExplorerScreen, when_ready
from explorer.tui.text import safe
from explorer.tui.widgets.code import Code, highlighted
from explorer.tui.widgets.table import Column, Table

if TYPE_CHECKING:
    from rich.text import Text

    from explorer.analysis.run import Run
    from explorer.analysis.source_view import CodeFile, LineDetail

FILES = (
    Column("tree", "File", flex=1),
    Column("cost_ns", "host", "duration", width=8),
    Column("device_ns", "device", "duration", width=8, rank=1, optional=True),
)
OPS = (
    Column("name", "Op", "name", flex=1),
    Column("calls", "calls", "count", width=8),
    Column("self_ns", "self", "duration", width=8),
    Column("total_ns", "total", "duration", width=8, rank=1),
)
KERNELS = (
    Column("name", "Kernel", "name", flex=1),
    Column("category", "kind", width=10, rank=2),
    Column("calls", "calls", "count", width=8),
    Column("total_ns", "device time", "duration", width=11),
)
CALLS = (
    Column("where", "Line", "path", flex=1),
    Column("function", "Function", flex=1, rank=2),
    Column("code", "Code", flex=2, rank=1),
    Column("duration_ns", "time", "duration", width=8),
)


class SourceScreen(ExplorerScreen):
    """Code with costs."""

    NAME = "source"
    ABOUT = (
        "What each line costs. host: time of the line on the CPU (its own Python and every op it is responsible for, "
        "backward ops included). device: time of the kernels it launched. The bar is the larger of both shares. speed and of "
        "peak: operations per second of its computation, and the least time the device needs for it over the time it took; "
        "n jumps to the next costly line. Below: what the line ran, and the calls to and from it."
    )
    BINDINGS = [
        Binding("e", "edit", "Editor", tooltip="Open $EDITOR at the line"),
        Binding("f", "files", "Files", tooltip="Show or hide the files"),
        Binding("o", "tab('ops')", "Ops", show=False),
        Binding("c", "next_tab", "Details", tooltip="Ops, kernels, callers, callees of the line"),
        Binding("l", "library", "Libraries too", tooltip="List library files too"),
        Binding("y", "copy", "Copy line", tooltip="Copy file, line number and code"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._rows: list[dict[str, Any]] = []
        self._wanted: tuple[str, int | None] | None = None
        self._asked: tuple[str, int | None] | None = None
        """The file and line opened last"""
        self._files_wanted: bool | None = None
        self._libraries = False

    def body(self) -> ComposeResult:
        with Horizontal(id="source-top"):
            yield Table(FILES, id="files", empty="No source line is known in this run.")
            yield Code(id="code")
        with TabbedContent(id="line-tabs"):
            with TabPane("Ops", id="ops"):
                yield Table(OPS, id="line-ops", empty="No framework op is charged to this line.")
            with TabPane("Kernels", id="kernels"):
                yield Table(KERNELS, id="line-kernels", empty="This line launched no device work.")
            with TabPane("Called by", id="callers"):
                yield Table(
                    CALLS,
                    id="line-callers",
                    empty="No caller is known: this line is the outermost, or chains were not recorded.",
                )
            with TabPane("Calls", id="callees"):
                yield Table(CALLS, id="line-callees", empty="It calls no user code.")

    def on_mount(self) -> None:
        self.set_focus(self.query_one(Code))
        self._arrange()

    def on_resize(self) -> None:
        self._arrange()

    def _arrange(self) -> None:
        wanted = self.size.width >= 120 if self._files_wanted is None else self._files_wanted
        self.query_one("#files").display = wanted

    def load(self) -> None:
        from explorer.analysis.source_view import line_rows

        self.ask("lines", line_rows, self._show_rows, key="line_rows")

    def _show_rows(self, rows: list[dict[str, Any]]) -> None:
        from explorer.analysis.line_efficiency import with_efficiency

        def complete(rows: list[dict[str, Any]]) -> None:
            self._rows = rows
            self.show_again()

        self._rows = rows
        # What lines achieve takes longer to find out than what they cost.
        self.ask("efficiency", lambda run: with_efficiency(run, rows), complete, key="line_efficiency")
        self._show_files()
        if self._wanted:
            self.show_line(*self._wanted)
        elif self._asked:
            self.show_again()
        elif rows:
            worst = next((row for row in rows if row["is_user"]), rows[0])
            self._open(worst["file"], None)
        else:
            from explorer.analysis.source_view import CodeFile

            self.query_one(Code).show(CodeFile("", (), True), [])
            for table in self.query("#line-tabs Table").results(Table):
                table.set_rows([])

    def show_again(self) -> None:
        if self._asked is not None:
            file, line = self._asked
            code = self.query_one(Code)
            if code.line is not None and code.file is not None and code.file.file == file:
                line = code.line.number
            self._open(file, line)

    def _show_files(self) -> None:
        from explorer.analysis.file_tree import file_tree
        from explorer.analysis.source_view import files_of

        files = files_of(self._rows)
        own = [file for file in files if file["is_user"]]
        self.query_one("#files", Table).set_rows(file_tree(files if self._libraries or not own else own))

    @when_ready
    def show_line(self, file: str, line: int | None) -> None:
        """Open a file at a line (asked by other screens)."""
        self._wanted = (file, line)
        if self._rows:
            self._wanted = None
            self._open(file, line)

    def _open(self, file: str, line: int | None) -> None:
        self._asked = file, line
        rows, dark = self._rows, self.app.current_theme.dark

        def read(run: Run) -> tuple[CodeFile, list[Text]]:
            from explorer.analysis.source_view import code_file

            found = code_file(run, rows, file)
            return found, highlighted([each.text for each in found.lines], dark)

        self.ask("file", read, lambda answer: self.query_one(Code).show(*answer, line), lane="quick")

    @on(Table.Selected, "#files")
    def _file_chosen(self, event: Table.Selected) -> None:
        if event.row["file"] is not None:
            self._open(event.row["file"], None)
            self.set_focus(self.query_one(Code))

    @on(Code.Moved)
    def _line_chosen(self, event: Code.Moved) -> None:
        code = self.query_one(Code)
        if code.file is None:
            return
        file, number = code.file.file, event.line.number
        if event.line.costs is None:
            from explorer.analysis.source_view import LineDetail

            self._show_detail(LineDetail([], [], [], []))
            return
        self.set_timer(0.08, lambda: self._ask_detail(file, number))

    def _ask_detail(self, file: str, number: int) -> None:
        code = self.query_one(Code)
        if code.line is None or code.line.number != number:
            return  # the cursor has moved on

        def detail(run: Run) -> LineDetail:
            from explorer.analysis.source_view import line_detail

            return line_detail(run, file, number)

        self.ask("detail", detail, self._show_detail, key=("line", file, number), lane="quick")

    def _show_detail(self, detail: LineDetail) -> None:
        self.query_one("#line-ops", Table).set_rows(detail.ops)
        self.query_one("#line-kernels", Table).set_rows(detail.kernels)
        for name, rows in (("callers", detail.callers), ("callees", detail.callees)):
            shown = [{**row, "where": f"{row['file']}:{row['line']}"} for row in rows]
            self.query_one(f"#line-{name}", Table).set_rows(shown)

    @on(Table.Selected, "#line-callers")
    @on(Table.Selected, "#line-callees")
    def _follow(self, event: Table.Selected) -> None:
        self._open(event.row["file"], event.row["line"])
        self.set_focus(self.query_one(Code))

    @on(Table.Selected, "#line-ops")
    @on(Table.Selected, "#line-kernels")
    def _find_in_timeline(self, event: Table.Selected) -> None:
        from explorer.tui.screens.timeline import TimelineScreen

        screen = self.explorer.go_to("timeline")
        assert isinstance(screen, TimelineScreen)
        screen.search(str(event.row["name"]))

    def action_edit(self) -> None:
        code = self.query_one(Code)
        if code.file is not None and code.line is not None:
            open_editor(self.app, code.file.file, code.line.number, self.explorer.source_roots())

    def action_files(self) -> None:
        files = self.query_one("#files", Table)
        self._files_wanted = not files.display
        self._arrange()
        self.set_focus(files if files.display else self.query_one(Code))

    def action_tab(self, name: str) -> None:
        self.query_one(TabbedContent).active = name

    def action_next_tab(self) -> None:
        names = ["ops", "kernels", "callers", "callees"]
        tabs = self.query_one(TabbedContent)
        tabs.active = names[(names.index(tabs.active) + 1) % len(names)]

    def action_library(self) -> None:
        self._libraries = not self._libraries
        self._show_files()

    def action_copy(self) -> None:
        code = self.query_one(Code)
        if code.file is not None and code.line is not None:
            self.copy(f"{code.file.file}:{code.line.number}: {safe(code.line.text.strip())}", "the line")
