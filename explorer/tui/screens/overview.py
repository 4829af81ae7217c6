"""Overview: what the step's time went to, the key figures, and what to change first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.widgets import Static

from explorer.tui import units
from explorer.tui.first_answer import first_answer
from explorer.tui.rows import finding_rows
from explorer.tui.screens.frame import ExplorerScreen
from explorer.tui.text import safe
from explorer.tui.theme import inks
from explorer.tui.widgets.key_figures import KeyFigures
from explorer.tui.widgets.stacked_bar import BarPart, StackedBar
from explorer.tui.widgets.step_bars import StepBars
from explorer.tui.widgets.table import Column, Table

if TYPE_CHECKING:
    from explorer.analysis.key_figures import Overview
    from explorer.analysis.step_parts import StepStory
    from explorer.model.finding import Findings

COLUMNS = (
    Column("mark", "", width=1),
    Column("title", "What costs time", flex=3),
    Column("where", "Line", "path", flex=2, rank=1),
    Column("saving_ns", "Saves about", "duration", width=11),
    Column("saving_share", "of step", "share"),
    Column("saving_share_bar", "", "bar", width=10, rank=2),
)

LINES = (
    Column("where", "Line", "path", flex=2),
    Column("code", "Code", flex=3, rank=1),
    Column("cost_ns", "host", "duration", width=9),
    Column("device_ns", "device", "duration", width=9, optional=True),
    Column("top_share", "share", "share", width=8),
    Column("share_bar", "", "bar", width=10, rank=2),
)
NO_EVENTS = "This run holds no events. Record at least one step, or import a trace that holds one."
TOP_LINES = 30
BARS = ("findings", "steps", "ranks")
"""What fills the lower part of the screen: findings (with some steps where there is room), all steps, or all ranks."""
TALL = 46
"""Lines of a terminal that has room for the costliest lines as well."""


class OverviewScreen(ExplorerScreen):
    """The answer first."""

    NAME = "overview"
    ABOUT = (
        "What a step's time goes to, over its complete steps, and what to change first. "
        "Enter on a finding opens its evidence; e opens its line in the source. b shows every step, then every rank, as a bar; a "
        "click on a step opens it on the timeline."
    )
    BINDINGS = [
        Binding("e", "source", "Source", tooltip="Open the line in the source"),
        Binding("d", "next_device", "Device", tooltip="Next device or rank"),
        Binding("b", "bars", "Bars", tooltip="All steps, all ranks, or what to change"),
        Binding("h", "health", "Health", tooltip="What is missing or doubtful in the run"),
        Binding("y", "copy", "Copy", tooltip="Copy the finding"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._overview: Overview | None = None
        self._findings: Findings | None = None
        self._shown = 0
        self._bars = 0
        """Which of BARS is shown"""

    def body(self) -> ComposeResult:
        with Vertical(id="story"):
            yield Static(id="story-title", classes="section")
            yield StackedBar(id="story-bar")
        yield KeyFigures(id="figures")
        yield StepBars(id="story-steps")
        yield Static("What to change", id="findings-title", classes="section")
        yield Table(COLUMNS, id="findings", empty="No bottleneck found by the rules that could be checked.")
        yield Static("Costliest lines", id="top-lines-title", classes="section")
        yield Table(LINES, id="top-lines", empty="No source line is known in this run. Record with lines on.")

    def on_mount(self) -> None:
        self.query_one("#story-title", Static).update(Text(f"Opening {self.explorer.run_name} …"))
        table = self.query_one("#findings", Table)
        table.loading_text = self.explorer.looking
        self.set_focus(table)

    def on_resize(self) -> None:
        if self.explorer.data is not None:
            self._load_lines()

    def _load_lines(self) -> None:
        if self.size.height >= TALL:
            from explorer.analysis.source_view import line_rows

            self.ask("lines", line_rows, self._show_lines, key="line_rows")

    def show_looking(self) -> None:
        self.query_one("#findings", Table).wait_with(self.explorer.looking)

    def load(self) -> None:
        # One engine answers: the step first, then the longer questions.
        self.ask("overview", first_answer, self._show_first, key="overview", failed=self._overview_failed)

    def _show_first(self, answer: Overview) -> None:
        self._show(answer)
        self._load_rest()

    def _overview_failed(self, text: str) -> None:
        self.query_one("#story-title", Static).update(Text(safe(text)))
        self._load_rest()

    def _load_rest(self) -> None:
        self.explorer.load_screens()
        self.data.ask_findings(self, self._show_findings, self.query_one("#findings", Table).say)
        self._load_lines()

    def _show(self, answer: Overview) -> None:
        self._overview = answer
        if answer.worst is not None:
            self._shown = answer.stories.index(answer.worst)
            self._show_story(answer.worst)
        else:
            self.query_one("#story-title", Static).update(NO_EVENTS)
        self.query_one(KeyFigures).show(answer.figures)
        self.query_one(KeyFigures).display = bool(answer.figures)

    def _show_story(self, story: StepStory) -> None:
        muted = inks(self.app.current_theme)["muted"]
        title = Text(no_wrap=True, end="")
        title.append("Where a step's time goes" if story.has_steps else "Where the time goes")
        stories = self._overview.stories if self._overview else ()
        ranks = len({each.rank for each in stories})
        place = story.device + (f", rank {story.rank}" if ranks > 1 else "")
        if len(stories) > 1:
            place += f" ({self._shown + 1} of {len(stories)})"
        how = f"mean of {story.count} steps" if story.has_steps else "whole recording, no steps in it"
        title.append(f"   {place} · {units.duration(story.mean_ns)} · {how}", style=f"not bold {muted}")
        self.query_one("#story-title", Static).update(title)
        self.query_one(StackedBar).show(
            [BarPart(part.key, part.label, part.duration_ns, part.share) for part in story.parts]
        )
        self._show_bars()

    def _show_bars(self) -> None:
        from explorer.analysis.step_parts import rank_bars

        if self._overview is None or not self._overview.stories:
            return
        story, bars = self._overview.stories[self._shown], self.query_one(StepBars)
        shown = BARS[self._bars]
        ranks = shown == "ranks"
        bars.show(rank_bars(list(self._overview.stories)) if ranks else story.steps, of_ranks=ranks)
        bars.set_class(not story.has_steps and shown == "findings", "-none")
        bars.can_focus = shown != "findings"
        self.set_class(shown != "findings", "-bars")
        self.set_focus(bars if bars.can_focus else self.query_one("#findings", Table))

    def action_bars(self) -> None:
        several = self._overview is not None and len({each.rank for each in self._overview.stories}) > 1
        self._bars = (self._bars + 1) % (len(BARS) if several else len(BARS) - 1)
        self._show_bars()

    def _show_findings(self, findings: Findings) -> None:
        self._findings = findings
        title = Text("What to change", end="")
        muted = inks(self.app.current_theme)["muted"]
        count = len(findings)
        title.append(
            f"   {count} finding{'' if count == 1 else 's'}"
            + (
                f", {len(findings.not_checked)} rule{'' if len(findings.not_checked) == 1 else 's'} could not be checked"
                if findings.not_checked
                else ""
            ),
            style=f"not bold {muted}",
        )
        self.query_one("#findings-title", Static).update(title)
        self.query_one("#findings", Table).set_rows(finding_rows(findings))

    def _show_lines(self, rows: list[dict[str, Any]]) -> None:
        shown = [
            {**r, "where": f"{r['file']}:{r['line']}", "share_bar": r["top_share"]} for r in rows[:TOP_LINES]
        ]
        self.query_one("#top-lines", Table).set_rows(shown)

    @on(Table.Selected, "#top-lines")
    def _open_line(self, event: Table.Selected) -> None:
        self._show_source(event.row["file"], event.row["line"])

    @on(Table.Selected, "#findings")
    def _open_finding(self, event: Table.Selected) -> None:
        from explorer.tui.screens.findings import FindingsScreen

        screen = self.explorer.go_to("findings")
        assert isinstance(screen, FindingsScreen)
        screen.show_finding(str(event.row["id"]))

    @on(StepBars.Chosen)
    def _open_step(self, event: StepBars.Chosen) -> None:
        if self._overview is not None and self.query_one(StepBars).of_ranks:
            stories = self._overview.stories
            place = event.bar.rank, event.bar.device
            self._shown = next(i for i, each in enumerate(stories) if (each.rank, each.device) == place)
            self._bars = BARS.index("steps")
            self._show_story(stories[self._shown])
            return
        from explorer.tui.screens.timeline import TimelineScreen

        screen = self.explorer.go_to("timeline")
        assert isinstance(screen, TimelineScreen)
        screen.show_range(event.bar.rank, event.bar.start_ns, event.bar.start_ns + event.bar.wall_ns)

    def action_source(self) -> None:
        row = self.query_one("#findings", Table).row
        if row is None or not row.get("site_id"):
            self.app.notify("This finding names no line.", timeout=2)
            return
        self._show_source(row["file"], row["line"])

    def _show_source(self, file: str, line: int) -> None:
        from explorer.tui.screens.source import SourceScreen

        screen = self.explorer.go_to("source")
        assert isinstance(screen, SourceScreen)
        screen.show_line(file, line)

    def action_next_device(self) -> None:
        if self._overview and self._overview.stories:
            self._shown = (self._shown + 1) % len(self._overview.stories)
            self._show_story(self._overview.stories[self._shown])

    def action_health(self) -> None:
        from explorer.tui.screens.health import HealthScreen

        if self.explorer.data is not None:
            self.app.push_screen(HealthScreen())

    def action_copy(self) -> None:
        row = self.query_one("#findings", Table).row
        if row is not None:
            self.copy(f"{row['title']} ({row['where']}): {row['advice']}", "the finding")
