"""Compare: this run against another: the verdict, and what explains the change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.widgets import Input, Static

from explorer.tui import units
from explorer.tui.screens.frame import ExplorerScreen
from explorer.tui.text import safe
from explorer.tui.theme import inks
from explorer.tui.widgets.table import Column, Table

if TYPE_CHECKING:
    from explorer.analysis.diff.comparison import Comparison
    from explorer.analysis.run import Run

DIMENSIONS = ("kind", "phase", "module", "line", "op", "kernel")
COLUMNS = (
    Column("key", "What", "name", flex=2),
    Column("detail", "", flex=1, rank=4),
    Column("before_ns", "before", "duration", width=9),
    Column("after_ns", "after", "duration", width=9),
    Column("change_ns", "change", "duration", width=9),
    Column("size", "", "bar", width=10, rank=2),
    Column("status", "", width=8, rank=3),
)
_VERDICTS = {
    "slower": ("slower", "bad"),
    "faster": ("faster", "good"),
    "no_significant_change": ("no significant change", "muted"),
    "undecided": ("undecided", "warn"),
}


class CompareScreen(ExplorerScreen):
    """Two runs side by side."""

    NAME = "compare"
    ABOUT = (
        "This run (after) against a baseline (before): whether the step time really changed, and what explains it, by "
        "kind of time, phase, module, line, op or kernel. In each table the changes add up to the change of the mean "
        "step. o opens a baseline; w swaps the two."
    )
    BINDINGS = [
        Binding("o", "open", "Open baseline", tooltip="Open a run or trace to compare with"),
        Binding(
            "m",
            "dimension(1)",
            "By kind, phase, line …",
            tooltip="Explain by kind, phase, module, line, op, kernel",
        ),
        Binding("M", "dimension(-1)", "The one before", show=False),
        Binding("w", "swap", "Swap", tooltip="Swap before and after"),
        Binding("escape", "cancel", "Cancel", show=False),
        Binding("y", "copy", "Copy", tooltip="Copy the row"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._baseline: Run | None = None
        self._comparison: Comparison | None = None
        self._dimension = "kind"
        self._swapped = False

    def body(self) -> ComposeResult:
        with Vertical(id="compare-head"):
            yield Static(id="compare-text")
        yield Static(id="compare-by", classes="section")
        yield Table(
            COLUMNS,
            id="compare-table",
            empty="Nothing to compare with yet: press o and give a run or a trace.",
        )
        yield Input(placeholder="Path of the run to compare with", id="compare-path", classes="bottom-input")

    def on_mount(self) -> None:
        self.query_one(Input).display = False
        self.query_one(Table).loading_text = None
        self.query_one("#compare-text", Static).update(
            Text(
                "Compare this run with another one.\nPress o and give the path of a baseline: a run or a trace."
            )
        )
        self.set_focus(self.query_one(Table))

    def load(self) -> None:
        if self._baseline is not None:
            self._compare()
        elif self.explorer.open_baseline is not None:
            opener = self.explorer.open_baseline
            self._say("Opening the baseline…")
            self.ask("baseline", lambda _: opener(), self._opened)

    def _say(self, text: str) -> None:
        self.query_one("#compare-text", Static).update(Text(text))

    def _opened(self, baseline: Run) -> None:
        self._baseline = baseline
        self._compare()

    def _compare(self) -> None:
        baseline, swapped = self._baseline, self._swapped
        assert baseline is not None
        self._say("Comparing…")
        self.query_one(Table).loading_text = "Comparing…"

        def compare(run: Run) -> Comparison:
            return run.compare(baseline) if swapped else baseline.compare(run)

        self.ask("compare", compare, self._show, failed=self._say)

    def _show(self, comparison: Comparison) -> None:
        self._comparison = comparison
        css = inks(self.app.current_theme)
        verdict = comparison.verdict
        word, tone = _VERDICTS.get(verdict.answer, (verdict.answer, "muted"))
        if verdict.answer == "undecided":
            word = f"{word}: {verdict.reason}"
        text = Text()
        text.append("before ", style=css["muted"])
        text.append(f"{units.duration(comparison.before_ns):>9}  ", style="bold")
        text.append(f"{safe(comparison.before)}\n")
        text.append("after  ", style=css["muted"])
        text.append(f"{units.duration(comparison.after_ns):>9}  ", style="bold")
        text.append(f"{safe(comparison.after)}\n")
        if verdict.change_text:
            text.append(f"{verdict.change_text} ", style=f"bold {css[tone]}")
        text.append(word, style=css[tone])
        text.append(f"   {verdict.basis_text}", style=css["muted"])
        for difference in comparison.differences[:4]:
            mark = css["warn"] if difference.weight != "note" else css["muted"]
            text.append(
                f"\n▲ {safe(difference.what)}: {safe(str(difference.before))} → {safe(str(difference.after))}",
                style=mark,
            )
        self.query_one("#compare-text", Static).update(text)
        self._show_dimension()

    def _show_dimension(self) -> None:
        css = inks(self.app.current_theme)
        title = Text("What explains it", no_wrap=True, end="")
        for dimension in DIMENSIONS:
            chosen = dimension == self._dimension
            title.append(
                f"   {dimension}", style=f"bold {css['accent']}" if chosen else f"not bold {css['muted']}"
            )
        self.query_one("#compare-by", Static).update(title)
        if self._comparison is not None:
            self.query_one(Table).set_rows(delta_rows(self._comparison, self._dimension))

    def action_dimension(self, way: int) -> None:
        self._dimension = DIMENSIONS[(DIMENSIONS.index(self._dimension) + way) % len(DIMENSIONS)]
        self._show_dimension()

    def action_open(self) -> None:
        box = self.query_one(Input)
        box.display = True
        self.set_focus(box)

    def action_cancel(self) -> None:
        self.query_one(Input).display = False
        self.set_focus(self.query_one(Table))

    @on(Input.Submitted, "#compare-path")
    def _path_given(self, event: Input.Submitted) -> None:
        path = event.value.strip()
        self.action_cancel()
        if not path:
            return
        opener = self.explorer.open_path

        self._say(f"Opening {safe(path)} …")
        self.ask("baseline", lambda _: opener(path), self._opened, failed=self._say)

    def action_swap(self) -> None:
        if self._baseline is not None:
            self._swapped = not self._swapped
            self._compare()

    def action_copy(self) -> None:
        row = self.query_one(Table).row
        if row is not None:
            self.copy(f"{row['key']}\t{row['before_ns']}\t{row['after_ns']}\t{row['change_ns']}", "the row")


def delta_rows(comparison: Comparison, dimension: str) -> list[dict[str, Any]]:
    """Rows of one table, the largest change first, with the size of each change as a share of the largest."""
    deltas = comparison.explained[dimension]
    largest = max((abs(delta.change_ns) for delta in deltas), default=0) or 1
    rows = [
        {
            "key": delta.key,
            "detail": delta.detail,
            "before_ns": delta.before_ns,
            "after_ns": delta.after_ns,
            "change_ns": delta.change_ns,
            "size": abs(delta.change_ns) / largest,
            "status": "" if delta.status == "same" else delta.status,
        }
        for delta in deltas
    ]
    return sorted(rows, key=lambda row: -abs(row["change_ns"]))
