"""Timeline: every track against time, with the selected event's details, search, and statistics of a range."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.text import Text
from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.widgets import Input, Static

from explorer.tui import units
from explorer.tui.event_text import event_text, legend_text, range_text
from explorer.tui.screens.frame import ExplorerScreen, when_ready
from explorer.tui.text import brief, safe
from explorer.tui.theme import inks
from explorer.tui.widgets.timeline import TimelineView

if TYPE_CHECKING:
    from explorer.analysis.event_details import EventDetails
    from explorer.analysis.run import Run
    from explorer.analysis.timeline import Found, Ints, Timeline

DETAIL_DELAY_SECONDS = 0.06


class TimelineScreen(ExplorerScreen):
    """Timeline with details."""

    NAME = "timeline"
    ABOUT = (
        "Every thread, stream, engine and queue against time. w and s zoom around the selection, a and d pan, the wheel "
        "zooms around the mouse; arrows go from event to event and lane to lane; f zooms to the selection. / searches, "
        "n and N go from match to match. [ and ] (or dragging) choose a range and show its statistics. The arrow leads "
        "from the launching call to the work it started; p goes to the other end. Shades show how busy a cell is."
    )
    BINDINGS = [
        Binding("slash", "search", "Search", key_display="/", tooltip="Search events by name"),
        Binding("n", "match(1)", "Next match"),
        Binding("N", "match(-1)", "Match before", show=False),
        Binding("p", "partner", "Launch ⇄ work", tooltip="From work to its launch and back"),
        Binding("e", "source", "Source", tooltip="Open the event’s line in the source"),
        Binding("t", "tracks", "Tracks", tooltip="Filter tracks"),
        Binding("r", "rank", "Rank", tooltip="Next rank"),
        Binding("y", "copy", "Copy", tooltip="Copy the event’s details"),
        Binding("escape", "clear", "Clear", show=False, tooltip="Drop selection, range and matches"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.rank: int | None = None
        self._details: EventDetails | None = None
        self._matches: Ints | None = None
        """Found events in order of time"""
        self._match = -1
        """Which of them the selection is"""
        self._searched = ""
        self._when_ready: list[Any] = []

    def body(self) -> ComposeResult:
        yield TimelineView(id="timeline-view")
        yield Static(id="timeline-status", classes="status")
        with VerticalScroll(id="timeline-detail", can_focus=False):
            yield Static(id="detail-text")
        yield Input(id="timeline-input", classes="bottom-input")

    def on_mount(self) -> None:
        self.query_one(Input).display = False
        self.set_focus(self.view)

    @property
    def view(self) -> TimelineView:
        return self.query_one(TimelineView)

    def load(self) -> None:
        if self.rank is None:
            self.rank = self.data.run.ranks[0]
        self._load_rank(self.rank)

    def _load_rank(self, rank: int) -> None:
        from explorer.analysis.timeline import load_timeline

        self.rank = rank

        def show(timeline: Timeline) -> None:
            before = (self.view.start_ns, self.view.end_ns) if self.view.timeline is not None else None
            kept = (
                before is not None
                and self.view.timeline is not None
                and self.view.timeline.rank == timeline.rank
            )
            self.view.show(timeline)
            if kept and before is not None:
                self.view.show_window(*before)
            if timeline.left_out:
                self.app.notify(
                    f"Of {timeline.left_out:,} short events of this rank only the longer ones are drawn.",
                    severity="warning",
                )
            waiting, self._when_ready = self._when_ready, []
            for call in waiting:
                call()
            self._status()

        self.ask("timeline", lambda run: load_timeline(run, rank), show, key=("timeline", rank))

    def _ready(self, call: Any, rank: int | None = None) -> None:
        """Run `call` now or when the timeline (of this rank) is there."""
        timeline = self.view.timeline
        if timeline is not None and rank in (None, timeline.rank):
            call()
        else:
            self._when_ready.append(call)
            if rank is not None and self.explorer.data is not None and rank != self.rank:
                self._load_rank(rank)
            elif rank is not None:
                self.rank = rank

    # Asked by other screens

    @when_ready
    def show_range(self, rank: int, start_ns: int, end_ns: int) -> None:
        """Show a window of a rank."""
        self._ready(lambda: self.view.show_window(start_ns, end_ns), rank)

    @when_ready
    def show_around(self, rank: int, time_ns: int) -> None:
        """Show the surroundings of a moment: a fiftieth of the recording."""

        def go() -> None:
            timeline = self.view.timeline
            if timeline is not None:
                half = max(1, (timeline.end_ns - timeline.start_ns) // 100)
                self.view.show_window(time_ns - half, time_ns + half)

        self._ready(go, rank)

    @when_ready
    def show_step(self, rank: int, step: int) -> None:
        """Show a step of a rank, whole."""

        def go() -> None:
            steps = self.view.timeline.steps if self.view.timeline else ()
            for each in steps:
                if each["step"] == step:
                    self.view.show_window(each["start_ns"], each["start_ns"] + each["duration_ns"])

        self._ready(go, rank)

    @when_ready
    def show_event(self, rank: int, event_id: int) -> None:
        """Select an event and zoom to its surroundings."""

        def go() -> None:
            timeline = self.view.timeline
            row = timeline.row_of(event_id) if timeline else None
            if row is None or timeline is None:
                self.app.notify(f"Event {rank}:{event_id} is not on the timeline.", timeout=3)
                return
            self.view.select(row)
            start, length = int(timeline.row_start_ns[row]), max(int(timeline.row_duration_ns[row]), 1000)
            self.view.show_window(start - 2 * length, start + 3 * length)

        self._ready(go, rank)

    @when_ready
    def search(self, text: str) -> None:
        """Find every event whose name holds the text, and go to the first after the window's start."""

        def go() -> None:
            timeline = self.view.timeline
            if timeline is not None:
                self._searched = text
                start_ns = self.view.start_ns
                self.ask("search", lambda run: timeline.find(text, start_ns), self._found)

        self._ready(go)

    def _found(self, found: Found) -> None:
        self._drop_matches()
        if not len(found.rows):
            self.app.notify(
                f"No event of this rank is called like “{safe(self._searched)[:60]}”.",
                timeout=3,
                markup=False,
            )
            self.view.refresh()
        else:
            self._matches, self.view.matches = found.rows, found.is_match
            self._go_to_match(found.first)
        self._status()

    def _go_to_match(self, index: int) -> None:
        assert self._matches is not None
        self._match = index % len(self._matches)
        self.view.select(int(self._matches[self._match]))

    def _drop_matches(self) -> None:
        self._matches = self.view.matches = None
        self._match = -1

    # Details

    @on(TimelineView.Selected)
    def _selected(self, event: TimelineView.Selected) -> None:
        self._details = None
        if event.row is None:
            self._show_legend()
            return
        row = event.row
        self.set_timer(DETAIL_DELAY_SECONDS, lambda: self._ask_details(row))

    def _ask_details(self, row: int) -> None:
        timeline = self.view.timeline
        if timeline is None or self.view.selected != row:
            return
        event_id = int(timeline.event_id[row])

        def details(run: Run) -> tuple[EventDetails, tuple[int, int] | None] | None:
            from explorer.analysis.event_details import event_details

            found = event_details(run, timeline.rank, event_id)
            return None if found is None else (found, _linked(timeline, row, found))

        self.ask("details", details, lambda answer: self._show_details(row, answer), lane="quick")

    def _show_details(self, row: int, answer: tuple[EventDetails, tuple[int, int] | None] | None) -> None:
        if answer is None or self.view.selected != row:
            return
        self._details, self.view.linked = answer
        self.view.refresh()
        text = event_text(self._details, self.view.window.low_ns, self.app.current_theme)
        self.query_one("#detail-text", Static).update(text)
        self.query_one("#timeline-detail").scroll_to(y=0, animate=False)

    @on(TimelineView.RangeChanged)
    def _range_changed(self, event: TimelineView.RangeChanged) -> None:
        timeline, start, end = self.view.timeline, event.start_ns, event.end_ns
        if timeline is None or start is None or end is None:
            self._show_legend()
            return
        self.ask("range", lambda run: timeline.statistics(start, end), self._show_range)

    def _show_range(self, answer: dict[str, Any]) -> None:
        self.query_one("#detail-text", Static).update(range_text(answer, self.app.current_theme))

    def on_screen_resume(self, event: events.ScreenResume) -> None:
        shared, timeline = self.explorer.shared_window, self.view.timeline
        if shared is not None and timeline is not None and shared[0] == timeline.rank:
            self.view.show_window(*shared[1:])

    @on(TimelineView.Moved)
    def _moved(self) -> None:
        if self.view.timeline is not None and self.view.timeline.tracks:
            window = self.view.window
            self.explorer.shared_window = self.view.timeline.rank, window.start_ns, window.end_ns
        if self.view.selected is None and self.view.range is None:
            self._show_legend()
        self._status()

    def _status(self) -> None:
        view = self.view
        timeline = view.timeline
        if timeline is None:
            return
        css = inks(self.app.current_theme)
        text = Text(no_wrap=True, end="")
        text.append(
            f"{units.duration(view.start_ns - timeline.start_ns)} to {units.duration(view.end_ns - timeline.start_ns)}"
        )
        text.append(f"  of {units.duration(timeline.end_ns - timeline.start_ns)}", style=css["faint"])
        if len(self.data.run.ranks) > 1:
            text.append(f"   rank {timeline.rank}")
        text.append(f"   colour: {view.color_mode}")
        if self._matches is not None:
            here = self._match + 1 if view.selected == self._matches[self._match] else 0
            text.append(
                f"   “{brief(self._searched)[:40]}” {here:,} of {len(self._matches):,}", style=css["accent"]
            )
        if view.track_filter:
            text.append(f"   tracks: {safe(view.track_filter)}", style=css["accent"])
        self.query_one("#timeline-status", Static).update(text)

    def _show_legend(self) -> None:
        timeline, mode = self.view.timeline, self.view.color_mode
        if timeline is not None:
            colors = self.view.paint_colors.base
            text = legend_text(mode, timeline.labels[mode], colors, self.app.current_theme)
            self.query_one("#detail-text", Static).update(text)

    # Actions

    def action_search(self) -> None:
        self._prompt("Search: part of a name", self._searched, "search")

    def action_tracks(self) -> None:
        self._prompt("Tracks: words in a track's name, nothing for all", self.view.track_filter, "tracks")

    def _prompt(self, text: str, value: str, purpose: str) -> None:
        box = self.query_one(Input)
        box.placeholder, box.value, box.display = text, value, True
        box.set_classes(f"bottom-input {purpose}")
        self.set_focus(box)

    @on(Input.Submitted, "#timeline-input")
    def _submitted(self, event: Input.Submitted) -> None:
        purpose = "tracks" if event.input.has_class("tracks") else "search"
        event.input.display = False
        self.set_focus(self.view)
        if purpose == "tracks":
            self.view.filter_tracks(event.value.strip())
        elif event.value.strip():
            self.search(event.value.strip())
        else:
            self._drop_matches()
            self.view.refresh()
            self._status()

    def action_match(self, way: int) -> None:
        if self._matches is None:
            self.action_search()
            return
        on_it = self.view.selected == self._matches[self._match]
        self._go_to_match(self._match + way if on_it else self._match)
        self._status()

    def action_partner(self) -> None:
        """From the work to its launching call, or from the call to the first work it launched."""
        if self.view.linked is not None:
            source, target = self.view.linked
            self.view.select(source if self.view.selected == target else target)

    def action_source(self) -> None:
        if self._details is None or not self._details.event["file"]:
            self.app.notify("Select an event with a line first.", timeout=2)
            return
        from explorer.tui.screens.source import SourceScreen

        screen = self.explorer.go_to("source")
        assert isinstance(screen, SourceScreen)
        screen.show_line(self._details.event["file"], self._details.event["line"])

    def action_rank(self) -> None:
        ranks = self.data.run.ranks
        if len(ranks) < 2 or self.rank is None:
            self.app.notify("This run has one rank.", timeout=2)
            return
        self._load_rank(ranks[(ranks.index(self.rank) + 1) % len(ranks)])

    def action_clear(self) -> None:
        box = self.query_one(Input)
        if box.display:
            box.display = False
            self.set_focus(self.view)
            return
        self._drop_matches()
        self.view.set_range(None, None)
        self.view.select(None)
        self._status()

    def action_copy(self) -> None:
        if self._details is not None:
            start_ns = self.view.window.low_ns
            text = event_text(self._details, start_ns, self.app.current_theme)
            self.copy(text.plain, "the event")


def _linked(timeline: Timeline, row: int, details: EventDetails) -> tuple[int, int] | None:
    """Rows of the launching and of the (first) launched event, where this is one of them and both are drawn."""
    if details.launch is not None:
        source = timeline.row_of(details.launch["event_id"])
        return None if source is None else (source, row)
    if details.launched:
        target = timeline.row_of(details.launched[0]["event_id"])
        return None if target is None else (row, target)
    return None
