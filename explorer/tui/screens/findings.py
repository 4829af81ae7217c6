"""Findings: every bottleneck with its evidence and advice, and what could not be checked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.widgets import Static

from explorer.model.saving_text import saving_text
from explorer.tui import units
from explorer.tui.rows import finding_rows
from explorer.tui.screens.frame import ExplorerScreen, when_ready
from explorer.tui.text import fit_path, safe
from explorer.tui.theme import inks
from explorer.tui.widgets.sql_panel import SqlPanel
from explorer.tui.widgets.table import Column, Table

if TYPE_CHECKING:
    from explorer.analysis.finding_what_if import FindingReplays, FindingWhatIf
    from explorer.analysis.run import Run
    from explorer.model.finding import Evidence, Finding, Findings

LIST = (
    Column("mark", "", width=1),
    Column("title", "Finding", width=34, flex=1),
    Column("saving_ns", "saves ≈", "duration", width=8),
    Column("saving_share", "of step", "share", width=7, rank=1),
)


class FindingsScreen(ExplorerScreen):
    """All findings."""

    NAME = "findings"
    ABOUT = (
        "Every bottleneck, worst first: the lines that cause it, the measured evidence, what to change, and what that "
        "would save. + and - replay the run with its line faster and predict the step. x runs the SQL of its evidence in place, where it can be edited and run again; X takes it to the SQL screen. Rules that "
        "this run cannot answer stand at the end, with the reason."
    )
    BINDINGS = [
        Binding("e", "source", "Source line", tooltip="Open its line in the source"),
        Binding("x", "sql", "Evidence SQL", tooltip="Run the SQL of its evidence here (again: the next one)"),
        Binding("X", "sql_screen", "To the SQL screen", show=False),
        Binding("i", "edit_sql", "Edit the SQL", show=False),
        Binding("escape", "close_sql", "Close the SQL", show=False),
        Binding("t", "timeline", "Timeline", tooltip="Show its first event on the timeline"),
        Binding(
            "plus,equals_sign",
            "what_if(1)",
            "Faster",
            key_display="+",
            tooltip="What if its line were faster: predict",
        ),
        Binding("minus", "what_if(-1)", "Slower", key_display="-", tooltip="What if: one rung back"),
        Binding("y", "copy", "Copy", tooltip="Copy the whole finding"),
        Binding("space", "scroll(8)", "Scroll details", show=False),
        Binding("b", "scroll(-8)", "Scroll details back", show=False),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._findings: Findings | None = None
        self._wanted: str | None = None
        self._sql_shown = 0
        self._rung = 0
        self._replays: FindingReplays | None = None
        self._predicted: FindingWhatIf | None = None

    def body(self) -> ComposeResult:
        with Horizontal(id="findings-body"):
            yield Table(LIST, id="finding-list", empty="No bottleneck found.")
            with Vertical(id="finding-pane"):
                with VerticalScroll(id="finding-detail", can_focus=False):
                    yield Static(id="finding-text")
                yield Static(id="finding-what-if")

    def on_mount(self) -> None:
        self.query_one("#finding-list", Table).loading_text = self.explorer.looking
        self.set_focus(self.query_one("#finding-list", Table))

    def show_looking(self) -> None:
        self.query_one("#finding-list", Table).wait_with(self.explorer.looking)

    def load(self) -> None:
        self._replays = None
        self.data.ask_findings(self, self._show, self.query_one("#finding-list", Table).say)

    def _show(self, findings: Findings) -> None:
        self._findings = findings
        rows = finding_rows(findings)
        if findings.not_checked:
            count = len(findings.not_checked)
            title = f"{count} rule{'' if count == 1 else 's'} not checked, and why"
            rows.append({"id": "not_checked", "mark": "·", "title": title, "_dim": True})
        self.query_one("#finding-list", Table).set_rows(rows)
        if self._wanted:
            self.show_finding(self._wanted)

    @when_ready
    def show_finding(self, finding_id: str) -> None:
        """Put the cursor on a finding (asked by other screens)."""
        self._wanted = finding_id
        table = self.query_one("#finding-list", Table)
        for index, row in enumerate(table.rows):
            if row["id"] == finding_id:
                table.move_to(index)
                self._wanted = None

    @property
    def finding(self) -> Finding | None:
        row = self.query_one("#finding-list", Table).row
        if row is None or self._findings is None:
            return None
        return next((finding for finding in self._findings if finding.id == row["id"]), None)

    @on(Table.Highlighted, "#finding-list")
    def _describe(self) -> None:
        self._sql_shown, self._rung, self._predicted = 0, 0, None
        finding = self.finding
        row = self.query_one("#finding-list", Table).row
        text = Text()
        if finding is not None:
            text = self._finding_text(finding)
        elif row is not None and self._findings is not None:
            text = not_checked_text(self._findings, inks(self.app.current_theme))
        self._show_what_if()
        self.query_one("#finding-text", Static).update(text)
        self.query_one("#finding-detail").scroll_to(y=0, animate=False)

    def _finding_text(self, finding: Finding) -> Text:
        css = inks(self.app.current_theme)
        muted, heading = css["muted"], f"bold {css['primary']}"
        tone = {"high": css["bad"], "medium": css["warn"]}.get(finding.severity, muted)
        text = Text()
        text.append(safe(finding.title) + "\n", style="bold")
        text.append(f"{finding.severity} severity", style=tone)
        text.append(f" · {finding.confidence} confidence · rule {finding.rule}\n\n", style=muted)
        text.append("Saves  ", style=heading)
        if not finding.saves_time:
            text.append("nothing by itself: it speaks of results or of trust in the numbers, not of time\n\n")
            return self._rest_of_finding(finding, text)
        text.append(saving_text(finding), style=f"bold {css['good']}")
        how = (
            "by replaying the step without it"
            if finding.saving.basis == "replay"
            else "a bound, not a replay"
        )
        text.append(f"; {how}\n\n", style=muted)
        return self._rest_of_finding(finding, text)

    def _rest_of_finding(self, finding: Finding, text: Text) -> Text:
        """What to do, lines, evidence, doubts."""
        css = inks(self.app.current_theme)
        muted, heading = css["muted"], f"bold {css['primary']}"
        text.append("Do this\n", style=heading)
        text.append(safe(finding.advice) + "\n\n")
        if finding.lines:
            text.append("Lines\n", style=heading)
            for line in finding.lines:
                text.append(f"{units.duration(line.time_ns):>9} {units.share(line.share):>7}  ", style="bold")
                text.append(f"{safe(line.file)}:{line.line} ", style=css["secondary"])
                text.append(f"in {safe(line.function)}\n", style=muted)
                if line.code:
                    text.append(f"{'':19}{safe(line.code)}\n")
            text.append("\n")
        text.append("Measured\n", style=heading)
        for item in finding.evidence:
            text.append(f"• {safe(item.statement)}\n")
            if item.events:
                shown = ", ".join(item.events[:6]) + (" …" if len(item.events) > 6 else "")
                text.append(f"  events {shown}\n", style=muted)
        for caveat in finding.caveats:
            text.append(f"! {safe(caveat)}\n", style=css["warn"])
        if finding.symptoms:
            text.append(f"\nAlso explains: {', '.join(safe(s) for s in finding.symptoms)}\n", style=muted)
        if len(finding.ranks) > 1 or finding.steps:
            where = f"ranks {_listed(finding.ranks)}" if finding.ranks else ""
            steps = f"steps {_listed(finding.steps)}" if finding.steps else ""
            text.append("\nSeen on " + ", ".join(part for part in (where, steps) if part), style=muted)
        return text

    # What if its line were faster

    def action_what_if(self, way: int) -> None:
        """One rung up or down the ladder of speed-ups for the finding's first line."""
        from explorer.analysis.finding_what_if import LADDER, FindingReplays

        finding = self.finding
        if finding is None or not finding.lines:
            self.app.notify("This one names no line.", timeout=2)
            return
        self._rung = max(0, min(self._rung + way, len(LADDER) - 1))
        self._show_what_if()
        if self._rung == 0:
            return
        rung = self._rung

        def predict(run: Run) -> FindingWhatIf:
            if self._replays is None:
                self._replays = FindingReplays(run)
            return self._replays.predict(finding, rung)

        def show(answer: FindingWhatIf) -> None:
            if (
                answer.rung == self._rung
                and self.finding is not None
                and answer.finding_id == self.finding.id
            ):
                self._predicted = answer
                self._show_what_if()

        self.ask("what_if", predict, show, key=("what_if", finding.id, rung), failed=self._what_if_failed)

    def _what_if_failed(self, text: str) -> None:
        self.query_one("#finding-what-if", Static).update(Text(safe(text)))

    def _show_what_if(self) -> None:
        from explorer.analysis.finding_what_if import LADDER

        css = inks(self.app.current_theme)
        box = self.query_one("#finding-what-if", Static)
        finding = self.finding
        box.display = finding is not None and bool(finding.lines)
        if finding is None or not finding.lines:
            return
        answer = self._predicted
        what = answer.what if answer is not None else f"{finding.lines[0].file}:{finding.lines[0].line}"
        text = Text()
        text.append("What if ", style=f"bold {css['primary']}")
        text.append(fit_path(what, 34), style=css["secondary"])
        text.append(" were ")
        text.append(LADDER[self._rung][1] + "\n", style="bold")
        for rung in range(len(LADDER)):
            text.append(
                "●" if rung == self._rung else "━",
                style=css["accent"] if rung <= self._rung else css["faint"],
            )
            text.append(
                "━" if rung < len(LADDER) - 1 else "",
                style=css["accent"] if rung < self._rung else css["faint"],
            )
        text.append("   ")
        if self._rung == 0:
            text.append("+ makes it faster, - takes it back", style=css["muted"])
        elif answer is None or answer.rung != self._rung:
            text.append("Replaying the run…", style=css["muted"])
        else:
            prediction = answer.prediction
            text.append(units.duration(prediction.step_before_ns))
            text.append(" → ", style=css["muted"])
            text.append(units.duration(prediction.step_after_ns), style=f"bold {css['good']}")
            text.append(" a step, ", style=css["muted"])
            text.append(f"saves {units.duration(prediction.saving_ns)} ({units.share(answer.saving_share)})")
        box.update(text)

    # Actions

    @on(Table.Selected, "#finding-list")
    def action_source(self) -> None:
        finding = self.finding
        if finding is None or not finding.lines:
            self.app.notify("This one names no line.", timeout=2)
            return
        from explorer.tui.screens.source import SourceScreen

        screen = self.explorer.go_to("source")
        assert isinstance(screen, SourceScreen)
        screen.show_line(finding.lines[0].file, finding.lines[0].line)

    def _evidence(self) -> Evidence | None:
        """The next piece of evidence, in turn."""
        finding = self.finding
        if finding is None or not finding.evidence:
            self.app.notify("This one has no evidence to run.", timeout=2)
            return None
        self._sql_shown += 1
        return finding.evidence[(self._sql_shown - 1) % len(finding.evidence)]

    def action_sql(self) -> None:
        evidence = self._evidence()
        if evidence is None:
            return
        panel = self._panel
        if panel is None:
            # Made when it is first wanted: most visits do without.
            panel = SqlPanel("", hint="i edits, X takes it to the SQL screen, Esc closes", id="finding-sql")
            self.query_one("#finding-pane").mount(panel)
        panel.display = True
        self.call_after_refresh(panel.show_sql, evidence.sql, evidence.statement)
        self.call_after_refresh(lambda: self.set_focus(panel.editor))

    @property
    def _panel(self) -> SqlPanel | None:
        return next(iter(self.query(SqlPanel)), None)

    def action_edit_sql(self) -> None:
        if self._panel is not None and self._panel.display:
            self.set_focus(self._panel.editor)

    def action_close_sql(self) -> None:
        if self._panel is not None:
            self._panel.display = False
            self.set_focus(self.query_one("#finding-list", Table))

    def action_sql_screen(self) -> None:
        from explorer.tui.screens.sql import SqlScreen

        panel = self._panel
        shown = panel.editor.text if panel is not None and panel.display else None
        evidence = self._evidence() if shown is None else None
        if shown is None and evidence is None:
            return
        screen = self.explorer.go_to("sql")
        assert isinstance(screen, SqlScreen)
        if shown is not None:
            screen.show_sql(shown)
        elif evidence is not None:
            screen.show_sql(evidence.sql, note=evidence.statement)

    def action_timeline(self) -> None:
        finding = self.finding
        events = [event for item in finding.evidence for event in item.events] if finding else []
        if not events:
            self.app.notify("This one names no single event.", timeout=2)
            return
        from explorer.tui.screens.timeline import TimelineScreen

        rank, _, event_id = events[0].partition(":")
        screen = self.explorer.go_to("timeline")
        assert isinstance(screen, TimelineScreen)
        screen.show_event(int(rank), int(event_id))

    def action_scroll(self, by: int) -> None:
        self.query_one("#finding-detail").scroll_relative(y=by, animate=False)

    def action_copy(self) -> None:
        if self.finding is not None:
            self.copy(self._finding_text(self.finding).plain, "the finding")


def not_checked_text(findings: Findings, css: dict[str, str]) -> Text:
    """Rules that this run could not answer, by reason."""
    reasons: dict[str, list[str]] = {}
    for item in findings.not_checked:
        reasons.setdefault(item.reason, []).append(item.rule)
    text = Text()
    text.append("Rules this run cannot answer\n\n", style="bold")
    for reason, rules in sorted(reasons.items(), key=lambda pair: -len(pair[1])):
        text.append(safe(reason[:1].upper() + reason[1:]) + "\n", style=css["primary"])
        text.append("  " + ", ".join(safe(rule) for rule in rules) + "\n\n", style=css["muted"])
    return text


def _listed(numbers: tuple[int, ...]) -> str:
    """1, 2, 3, 7 as '1–3, 7'."""
    parts: list[str] = []
    ordered = sorted(set(numbers))
    index = 0
    while index < len(ordered):
        last = index
        while last + 1 < len(ordered) and ordered[last + 1] == ordered[last] + 1:
            last += 1
        parts.append(str(ordered[index]) if last == index else f"{ordered[index]}–{ordered[last]}")
        index = last + 1
    return ", ".join(parts)
