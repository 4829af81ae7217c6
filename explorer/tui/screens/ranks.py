"""Ranks: a heat map of ranks and steps, and who makes the others wait."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.widgets import Static

from explorer.tui import units
from explorer.tui.screens.frame import ExplorerScreen
from explorer.tui.theme import inks
from explorer.tui.widgets.heat_map import HeatMap
from explorer.tui.widgets.table import Column, Table

if TYPE_CHECKING:
    from explorer.analysis.rank_view import RankGrid

COLUMNS = (
    Column("rank", "rank", "number", width=5),
    Column("device", "device", width=10, rank=4),
    Column("steps", "steps", "count", width=6, rank=5),
    Column("wall_ns", "step", "duration", width=9),
    Column("compute_ns", "compute", "duration", width=9),
    Column("communication_ns", "communication", "duration", width=13, rank=2),
    Column("exposed_communication_ns", "exposed", "duration", width=9, rank=1),
    Column("idle_ns", "idle", "duration", width=9),
)


class RanksScreen(ExplorerScreen):
    """Ranks."""

    NAME = "ranks"
    ABOUT = (
        "Every rank and step as a cell, hotter the longer; m changes what is measured. In synchronous training a slow "
        "rank shows as long compute on its own row and long communication on all others: they wait for it. Enter opens "
        "the step on the timeline."
    )
    BINDINGS = [
        Binding("m", "measure(1)", "Measure", tooltip="Next measure"),
        Binding("M", "measure(-1)", "Measure before", show=False),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._grid: RankGrid | None = None
        self._measure = ""

    def body(self) -> ComposeResult:
        yield Static(id="ranks-title", classes="section")
        yield Static(id="ranks-sentence", classes="sentence")
        yield HeatMap(id="ranks-map")
        yield Static(id="ranks-status", classes="status")
        yield Table(COLUMNS, id="ranks-table", empty="This run holds no steps.")

    def on_mount(self) -> None:
        super().on_mount()
        self.query_one("#ranks-title", Static).update("Ranks")
        self.set_focus(self.query_one(HeatMap))

    def load(self) -> None:
        from explorer.analysis.rank_view import rank_grid

        self.ask("ranks", rank_grid, self._show, key="ranks")

    def _show(self, grid: RankGrid) -> None:
        from explorer.analysis.rank_view import telling_measure

        self._grid = grid
        self._measure = self._measure or telling_measure(grid)
        self.query_one("#ranks-sentence", Static).update(Text(grid.sentence))
        self.query_one(Table).set_rows(grid.ranks)
        self._show_measure()

    def _show_measure(self) -> None:
        from explorer.analysis.rank_view import MEASURES, heat

        if self._grid is None:
            return
        css = inks(self.app.current_theme)
        label, meaning = MEASURES[self._measure]
        shares, low, high = heat(self._grid, self._measure)
        title = Text("Ranks", no_wrap=True, end="")
        title.append(f"   {label}", style=css["accent"])
        title.append(
            f"   {units.duration(low)} to {units.duration(high)}   {meaning}",
            style=f"not bold {css['muted']}",
        )
        self.query_one("#ranks-title", Static).update(title)
        self.query_one(HeatMap).show(self._grid.rank_numbers, self._grid.step_numbers, shares)
        self._show_cell()

    @on(HeatMap.Moved)
    def _show_cell(self) -> None:
        grid, heat_map = self._grid, self.query_one(HeatMap)
        if grid is None or not grid.rank_numbers or not grid.step_numbers:
            return
        rank, step = heat_map.rank, heat_map.step
        text = Text(f"rank {grid.rank_numbers[rank]}, step {grid.step_numbers[step]}", no_wrap=True, end="")
        from explorer.analysis.rank_view import MEASURES

        for measure, (label, _) in MEASURES.items():
            value = grid.values[measure][rank][step]
            text.append(f"   {label} ", style=inks(self.app.current_theme)["muted"])
            text.append(units.duration(value), style="bold" if measure == self._measure else "")
        self.query_one("#ranks-status", Static).update(text)

    @on(HeatMap.Opened)
    def _open(self, event: HeatMap.Opened) -> None:
        if self._grid is None:
            return
        from explorer.tui.screens.timeline import TimelineScreen

        screen = self.explorer.go_to("timeline")
        assert isinstance(screen, TimelineScreen)
        screen.show_step(self._grid.rank_numbers[event.rank], self._grid.step_numbers[event.step])

    def action_measure(self, way: int) -> None:
        from explorer.analysis.rank_view import MEASURES

        if self._grid is None:
            return
        names = list(MEASURES)
        self._measure = names[(names.index(self._measure) + way) % len(names)]
        self._show_measure()
