"""One row per step: its number, what its time went to, how long it took; the longest fills the width."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.segment import Segment
from textual import events
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from explorer.tui import units
from explorer.tui.theme import palette_of
from explorer.tui.widgets.stacked_bar import bar_text

if TYPE_CHECKING:
    from explorer.analysis.step_parts import StepBar


class StepBars(ScrollView, can_focus=False):
    """Steps on one scale, so that a slow step stands out."""

    DEFAULT_CSS = """
    StepBars {
        height: 1fr; padding: 0 1; scrollbar-size-vertical: 1; background: $background; overflow-x: hidden;
        & > .bars--dim { color: $ink-muted; }
    }
    """
    COMPONENT_CLASSES = {"bars--dim"}

    class Chosen(Message):
        """A step was clicked."""

        def __init__(self, bar: StepBar) -> None:
            super().__init__()
            self.bar = bar

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.steps: Sequence[StepBar] = ()
        self.longest_ns = 1
        self.of_ranks = False

    def show(self, steps: Sequence[StepBar], *, of_ranks: bool) -> None:
        """Show a bar each; `of_ranks`: they are the mean steps of ranks."""
        self.steps = steps
        self.of_ranks = of_ranks
        self.longest_ns = max((step.wall_ns for step in steps), default=1) or 1
        self.virtual_size = Size(self.size.width, len(steps))
        self.refresh()

    def render_line(self, y: int) -> Strip:
        index = y + int(self.scroll_offset.y)
        width = self.scrollable_content_region.width
        base = self.rich_style
        if not 0 <= index < len(self.steps):
            return Strip.blank(width, base)
        step = self.steps[index]
        dim = base + self.get_component_rich_style("bars--dim", partial=True)
        if self.of_ranks:
            label = f"rank {step.rank}"
        else:
            label = f"step {step.step}" if step.step is not None else "all"
        label_cells = 10
        number = units.duration(step.wall_ns).rjust(9) + (
            "" if step.complete or step.step is None else " cut"
        )
        room = max(4, width - label_cells - 14)
        shares = [(key, value / self.longest_ns) for key, value in step.parts.items()]
        bar = bar_text(shares, room, palette_of(self.app.current_theme), thin=True)
        segments = [Segment(label.ljust(label_cells), dim)]
        for text, style, _ in bar.render(self.app.console):
            segments.append(Segment(text, base + style if style else base))
        segments.append(Segment(f" {number}", base if step.complete or step.step is None else dim))
        return Strip(segments).adjust_cell_length(width, base)

    def on_click(self, event: events.Click) -> None:
        index = event.y + int(self.scroll_offset.y)
        if 0 <= index < len(self.steps):
            self.post_message(self.Chosen(self.steps[index]))
