"""Counters: telemetry and other values over time, on the time axis of the steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding
from textual.widgets import Static

from explorer.tui import units
from explorer.tui.screens.frame import ExplorerScreen
from explorer.tui.text import safe
from explorer.tui.theme import inks
from explorer.tui.widgets.plot import Band, Plots
from explorer.tui.widgets.timeline_window import TimeWindow

if TYPE_CHECKING:
    from explorer.analysis.counter_view import CounterPicture, CounterSeries


def value_text(value: float, unit: str) -> str:
    """A value with its unit."""
    if unit == "bytes":
        return units.size(value)
    if unit == "percent":
        return f"{value:.0f} %"
    short = {"watt": " W", "celsius": " °C", "hertz": " Hz", "count": ""}.get(
        unit, f" {unit}" if unit else ""
    )
    return f"{units.count(round(value, 2))}{short}"


class CountersScreen(ExplorerScreen):
    """Counters."""

    NAME = "counters"
    ABOUT = (
        "Telemetry and other counters, one plot each, from the smallest to the largest value, over the time that the timeline "
        "shows and in its columns: w, s, a, d and z move both. The axis at the end shows where steps begin. + and - make the "
        "plots taller or lower."
    )
    BINDINGS = [
        Binding("w", "zoom(2)", "Zoom in"),
        Binding("s", "zoom(0.5)", "Zoom out"),
        Binding("a", "pan(-0.25)", "Left", tooltip="Pan left"),
        Binding("d", "pan(0.25)", "Right", tooltip="Pan right"),
        Binding("z", "whole", "All", tooltip="Show the whole recording"),
        Binding("r", "rank", "Rank", tooltip="Next rank"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._rank = 0
        self.window: TimeWindow | None = None

    def body(self) -> ComposeResult:
        yield Static("Counters", id="counters-title", classes="section")
        yield Plots(
            id="counters-plots", empty="No counters: this run holds no telemetry. Record with telemetry on."
        )

    def on_mount(self) -> None:
        self.set_focus(self.query_one(Plots))

    def load(self) -> None:
        from explorer.analysis.counter_view import counter_picture

        ranks, shared = self.data.run.ranks, self.explorer.shared_window
        rank = ranks[self._rank % len(ranks)]
        window = shared[1:] if shared is not None and shared[0] == rank else None
        key = "counters", rank, window
        self.ask(
            "counters", lambda run: counter_picture(run, rank, window), self._show, key=key, lane="quick"
        )

    def on_screen_resume(self, event: events.ScreenResume) -> None:
        shared, window = self.explorer.shared_window, self.window
        if window is not None and shared is not None and shared[1:] != (window.start_ns, window.end_ns):
            self.load()

    def _show(self, picture: CounterPicture) -> None:
        css = inks(self.app.current_theme)
        self.window = TimeWindow(picture.low_ns, picture.high_ns)
        self.window.show(picture.start_ns, picture.end_ns)
        title = Text("Counters", end="")
        ranks = self.data.run.ranks
        where = f"rank {ranks[self._rank % len(ranks)]} · " if len(ranks) > 1 else ""
        span = units.duration(picture.end_ns - picture.start_ns)
        first = units.duration(picture.start_ns - picture.low_ns)
        part = f" from {first}" if self.window.span_ns < picture.high_ns - picture.low_ns else ""
        if picture.series:
            title.append(
                f"   {where}{len(picture.series)} over {span}{part}", style=f"not bold {css['muted']}"
            )
        self.query_one("#counters-title", Static).update(title)
        ticks = [(f"step {step}", share) for step, share in picture.steps]
        self.query_one(Plots).show([_band(series) for series in picture.series], ticks)

    def _share_window(self) -> None:
        """Show the window here, and on the timeline when that comes to the front."""
        if self.window is not None:
            ranks = self.data.run.ranks
            self.explorer.shared_window = (
                ranks[self._rank % len(ranks)],
                self.window.start_ns,
                self.window.end_ns,
            )
            self.load()

    def action_zoom(self, factor: float) -> None:
        if self.window is not None:
            self.window.zoom_at(float(factor), self.window.middle_ns)
            self._share_window()

    def action_pan(self, part: float) -> None:
        if self.window is not None:
            self.window.pan(float(part))
            self._share_window()

    def action_whole(self) -> None:
        if self.window is not None:
            self.window.show(self.window.low_ns, self.window.high_ns)
            self._share_window()

    def action_rank(self) -> None:
        if len(self.data.run.ranks) < 2:
            self.app.notify("This run has one rank.", timeout=2)
            return
        self._rank += 1
        self.load()


def _band(series: CounterSeries) -> Band:
    low = 0.0 if series.unit == "percent" else series.smallest
    high = max(series.largest, 100.0) if series.unit == "percent" else series.largest
    here = "" if any(value is not None for value in series.values) else "no sample in this time · in all: "
    return Band(
        title=f"{safe(series.name)}  {safe(series.track)}",
        values=series.values,
        low=low,
        high=high if high > low else low + 1,
        high_text=value_text(high, series.unit),
        low_text=value_text(low, series.unit),
        note=f"{here}mean {value_text(series.mean, series.unit)}, last {value_text(series.last, series.unit)}, {series.samples:,} samples",
    )
