"""Ranks: a heat map of ranks and steps, who holds the others up, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.widgets import Static

from explorer.tui import units
from explorer.tui.screens.frame import ExplorerScreen
from explorer.tui.text import safe
from explorer.tui.theme import inks
from explorer.tui.widgets.heat_map import HeatMap
from explorer.tui.widgets.pieces import Pieces
from explorer.tui.widgets.table import Column, Table

if TYPE_CHECKING:
    from explorer.analysis.rank_view import RankGrid

COLUMNS = (
    Column("rank", "rank", "number", width=5),
    Column("device", "device", width=10, rank=6),
    Column("steps", "steps", "count", width=6, rank=8),
    Column("wall_ns", "step", "duration", width=9),
    Column("own_ns", "own work", "duration", width=9),
    Column("wait_ns", "waiting", "duration", width=9, optional=True),
    Column("compute_ns", "compute", "duration", width=9),
    Column("communication_ns", "communication", "duration", width=13, rank=4, optional=True),
    Column("data_ns", "data", "duration", width=9, rank=5, optional=True),
    Column("idle_ns", "device idle", "duration", width=11, rank=7),
)
LATE = (
    Column("rank", "rank", "number", width=5),
    Column("delay_ns", "holds up by", "duration", width=11),
    Column("share", "of step", "share", width=7, rank=3),
    Column("how", "last in", width=14, rank=4),
    Column("more_ns", "more", "duration", width=9),
    Column("cause", "of", width=12, rank=1),
    Column("where", "Line", "path", flex=2),
    Column("code", "Code", flex=3, rank=2),
)


class RanksScreen(ExplorerScreen):
    """Ranks."""

    NAME = "ranks"
    ABOUT = (
        "Every rank and step as a cell, hotter the longer; m changes what is measured. A rank that is late shows as long "
        "own work on its row and waiting on all others. Below stand the ranks that hold the others up, with what they do "
        "more of than the median rank and the line of it. Enter on a cell opens the step on the timeline, e or Enter on a "
        "late rank its line."
    )
    BINDINGS = [
        Binding("m", "measure(1)", "Measure", tooltip="Next measure"),
        Binding("M", "measure(-1)", "Measure before", show=False),
        Binding("e", "source", "Source", tooltip="Open the line of the late rank in the source"),
        Binding("r", "next_part", "Map or tables", tooltip="To the heat map, the late ranks, all ranks"),
        Binding("y", "copy", "Copy", tooltip="Copy what is said of the late rank"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._grid: RankGrid | None = None
        self._measure = ""

    def body(self) -> ComposeResult:
        yield Static(id="ranks-title", classes="section")
        yield Static(id="ranks-sentence", classes="sentence")
        yield HeatMap(id="ranks-map")
        yield Pieces(id="ranks-status", classes="status")
        yield Static("Who holds the others up", id="late-title", classes="section")
        yield Table(LATE, id="late-table", empty="No rank does by 1 % of a step or more.")
        yield Static("All ranks, median step", id="ranks-table-title", classes="section")
        yield Table(COLUMNS, id="ranks-table", empty="This run holds no steps.")

    def on_mount(self) -> None:
        self.query_one("#ranks-title", Static).update("Ranks")
        for name in ("late-title", "late-table"):
            self.query_one(f"#{name}").display = False
        self.set_focus(self.query_one(HeatMap))

    def load(self) -> None:
        from explorer.analysis.rank_view import rank_grid

        self.ask("ranks", rank_grid, self._show, key="ranks")

    def _show(self, grid: RankGrid) -> None:
        from explorer.analysis.rank_view import telling_measure

        first = self._grid is None
        self._grid = grid
        if self._measure not in grid.measures:
            self._measure = telling_measure(grid)
        self.query_one("#ranks-sentence", Static).update(Text(grid.sentence))
        self.query_one("#ranks-table", Table).set_rows(grid.ranks)
        late = self.query_one("#late-table", Table)
        late.set_rows(grid.late)
        late.styles.height = min(len(grid.late), 3 if self.size.height < 30 else 5) + 1
        for name in ("late-title", "late-table"):
            self.query_one(f"#{name}").display = bool(grid.late)
        self._show_measure()
        if first and grid.late:
            worst = grid.rank_numbers.index(grid.late[0]["rank"])
            self.call_after_refresh(self.query_one(HeatMap).move_to, worst, 0)

    def _show_measure(self) -> None:
        from explorer.analysis.rank_view import MEASURES, heat

        grid = self._grid
        if grid is None:
            return
        css = inks(self.app.current_theme)
        shares, low, high = heat(grid, self._measure)
        title = Text("Ranks", no_wrap=True, end="")
        for measure in grid.measures:
            chosen = measure == self._measure
            style = f"bold {css['accent']}" if chosen else f"not bold {css['muted']}"
            title.append(f"  {MEASURES[measure][0]}", style=style)
        self.query_one("#ranks-title", Static).update(title)
        texts = [[units.duration(value) for value in row] for row in grid.values[self._measure]]
        heat_map = self.query_one(HeatMap)
        scale = units.duration(low), units.duration(high), MEASURES[self._measure][1]
        heat_map.show(grid.rank_numbers, grid.step_numbers, shares, texts, scale)
        heat_map.styles.height = heat_map.lines
        self._show_cell()

    @on(HeatMap.Moved)
    def _show_cell(self) -> None:
        from explorer.analysis.rank_view import MEASURES

        grid, heat_map = self._grid, self.query_one(HeatMap)
        if grid is None or not grid.rank_numbers or not grid.step_numbers:
            return
        css, rank, step = inks(self.app.current_theme), heat_map.rank, heat_map.step
        place = f"rank {grid.rank_numbers[rank]}, step {grid.step_numbers[step]}"
        pieces = []
        for measure in sorted(grid.measures, key=lambda each: each != self._measure):
            text = Text(f"   {MEASURES[measure][0]} ", style=css["muted"])
            value = units.duration(grid.values[measure][rank][step])
            text.append(
                value, style=f"bold {css['foreground']}" if measure == self._measure else css["foreground"]
            )
            pieces.append(text)
        self.query_one("#ranks-status", Pieces).show(place, pieces)

    @on(HeatMap.Opened)
    def _open(self, event: HeatMap.Opened) -> None:
        if self._grid is None:
            return
        from explorer.tui.screens.timeline import TimelineScreen

        screen = self.explorer.go_to("timeline")
        assert isinstance(screen, TimelineScreen)
        screen.show_step(self._grid.rank_numbers[event.rank], self._grid.step_numbers[event.step])

    @on(Table.Selected, "#ranks-table")
    def _to_rank(self, event: Table.Selected) -> None:
        """To the rank's row of the map."""
        heat_map = self.query_one(HeatMap)
        self.set_focus(heat_map)
        heat_map.move_to(heat_map.ranks.index(event.row["rank"]), heat_map.step)

    def action_measure(self, way: int) -> None:
        if self._grid is not None:
            names = self._grid.measures
            self._measure = names[(names.index(self._measure) + way) % len(names)]
            self._show_measure()

    @on(Table.Selected, "#late-table")
    def action_source(self) -> None:
        row = self.query_one("#late-table", Table).row
        if row is None or not row.get("file"):
            self.app.notify("No line is known that holds the others up.", timeout=2)
            return
        from explorer.tui.screens.source import SourceScreen

        screen = self.explorer.go_to("source")
        assert isinstance(screen, SourceScreen)
        screen.show_line(row["file"], row["line"])

    def action_next_part(self) -> None:
        parts = [each for each in (self.query_one(HeatMap), *self.query(Table)) if each.display]
        here = parts.index(self.focused) if self.focused in parts else -1
        self.set_focus(parts[(here + 1) % len(parts)])

    def action_copy(self) -> None:
        if self._grid is None:
            return
        row = self.query_one("#late-table", Table).row
        cause = f" {row['cause']} {row['where']} {row['code']}" if row and row.get("cause") else ""
        self.copy(safe(self._grid.sentence + cause), "the sentence")
