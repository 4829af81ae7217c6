"""Memory: allocated and reserved over time, and what the peak is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal

from explorer.tui import units
from explorer.tui.screens.frame import ExplorerScreen
from explorer.tui.theme import inks
from explorer.tui.widgets.pieces import Pieces
from explorer.tui.widgets.plot import Band, Plots
from explorer.tui.widgets.table import Column, Table

if TYPE_CHECKING:
    from explorer.analysis.memory_view import MemoryPicture

LINES = (
    Column("what", "Line at the peak", "path", flex=2),
    Column("code", "Code", flex=2, rank=3),
    Column("size_bytes", "size", "size", width=9),
    Column("share", "of peak", "share", width=8, rank=1),
    Column("share_bar", "", "bar", width=8, rank=2),
    Column("blocks", "blocks", "count", width=7, rank=4),
)
WHOLES = {
    "line": LINES,
    "module": (Column("what", "Module at the peak", flex=2), *LINES[2:]),
    "op": (Column("what", "Op at the peak", "name", flex=2), *LINES[2:]),
}
"""What the peak can be told apart by, with its columns."""
CATEGORIES = (
    Column("what", "At the peak", flex=1),
    Column("size_bytes", "size", "size", width=9),
    Column("share", "of peak", "share", width=8, rank=1),
)


class MemoryScreen(ExplorerScreen):
    """Memory."""

    NAME = "memory"
    ABOUT = (
        "Allocated memory over time, with reserved memory behind it, and what was allocated at the peak by category and "
        "by line, module or op (m changes that). What the recording did not see being allocated stands as such."
    )
    BINDINGS = [
        Binding("d", "next_device", "Device", tooltip="Next device or rank"),
        Binding("m", "whole", "By line, module, op", tooltip="The peak by line, module or op"),
        Binding("e", "source", "Source", tooltip="Open the line in the source"),
        Binding("t", "timeline", "Timeline", tooltip="The peak on the timeline"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._pictures: list[MemoryPicture] = []
        self._shown = 0
        self._whole = "line"

    def body(self) -> ComposeResult:
        yield Pieces(id="memory-title", classes="section")
        yield Plots(
            id="memory-plot", empty="No allocations are known in this run. Record with profile_memory=True."
        )
        with Horizontal(id="memory-peak"):
            yield Table(CATEGORIES, id="memory-categories", empty="Nothing recorded.")
            yield Table(LINES, id="memory-lines", empty="No allocation with a line was alive at the peak.")

    def on_mount(self) -> None:
        self.set_focus(self.query_one("#memory-lines", Table))

    def load(self) -> None:
        from explorer.analysis.memory_view import memory_pictures

        self.ask("memory", memory_pictures, self._show, key="memory")

    def _show(self, pictures: list[MemoryPicture]) -> None:
        self._pictures = pictures
        if pictures:
            self._show_picture()
            return
        self.query_one("#memory-title", Pieces).show("Memory")
        self.query_one(Plots).show(())
        for table in self.query(Table):
            table.set_rows([])

    def _show_picture(self) -> None:
        picture = self._pictures[self._shown]
        css = inks(self.app.current_theme)
        summary = picture.summary
        title = Text("Memory", no_wrap=True, end="")
        title.append(f"   {picture.device}, rank {picture.rank} · peak ", style=f"not bold {css['muted']}")
        title.append(units.size(summary["peak_bytes"]), style=css["accent"])
        pieces = []
        if summary["peak_reserved_bytes"]:
            pieces.append(f"reserved {units.size(summary['peak_reserved_bytes'])}")
        growth = summary["growth_bytes"] or 0
        pieces.append(f"{'grew' if growth >= 0 else 'shrank'} by {units.size(abs(growth))}")
        pieces.append(
            f"{units.count(summary['allocations'])} allocations of {units.size(summary['churn_bytes'])}"
        )
        if len(self._pictures) > 1:
            pieces.append(f"{self._shown + 1} of {len(self._pictures)}")
        muted = [Text(f" · {piece}", style=f"not bold {css['muted']}") for piece in pieces]
        self.query_one("#memory-title", Pieces).show(title, muted)
        known = [value for value in (*picture.allocated, *picture.reserved) if value is not None]
        high = max(known, default=1.0)
        self.query_one(Plots).show(
            [
                Band(
                    "allocated" + (", reserved behind it" if any(picture.reserved) else ""),
                    picture.allocated,
                    0.0,
                    high,
                    units.size(high),
                    "0",
                    note=f"over {units.duration(picture.end_ns - picture.start_ns)}",
                    behind=picture.reserved if any(picture.reserved) else (),
                )
            ]
        )
        unseen = []
        if picture.unseen_bytes:
            part = picture.unseen_bytes / max(1, summary["peak_bytes"])
            unseen = [
                {"what": "allocated unseen", "size_bytes": picture.unseen_bytes, "share": part, "_dim": True}
            ]
        self.query_one("#memory-categories", Table).set_rows([*picture.by_category, *unseen])
        self._show_peak()

    def _show_peak(self) -> None:
        picture = self._pictures[self._shown]
        rows = {"line": picture.by_line, "module": picture.by_module, "op": picture.by_op}[self._whole]
        table = self.query_one("#memory-lines", Table)
        table.set_columns(WHOLES[self._whole])
        table.set_rows([{**row, "share_bar": row["share"]} for row in rows])

    def action_whole(self) -> None:
        names = list(WHOLES)
        self._whole = names[(names.index(self._whole) + 1) % len(names)]
        if self._pictures:
            self._show_peak()

    def action_next_device(self) -> None:
        if self._pictures:
            self._shown = (self._shown + 1) % len(self._pictures)
            self._show_picture()

    @on(Table.Selected, "#memory-lines")
    def action_source(self) -> None:
        row = self.query_one("#memory-lines", Table).row
        if row is None or not row.get("file"):
            self.app.notify("No line is known for it.", timeout=2)
            return
        from explorer.tui.screens.source import SourceScreen

        screen = self.explorer.go_to("source")
        assert isinstance(screen, SourceScreen)
        screen.show_line(row["file"], row["line"])

    def action_timeline(self) -> None:
        if not self._pictures:
            return
        from explorer.tui.screens.timeline import TimelineScreen

        picture = self._pictures[self._shown]
        screen = self.explorer.go_to("timeline")
        assert isinstance(screen, TimelineScreen)
        screen.show_around(picture.rank, picture.summary["peak_ns"])
