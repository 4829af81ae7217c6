"""What every screen has: the run's line, the list of screens, the body, the footer; and how it gets its answers."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial, wraps
from typing import TYPE_CHECKING, ClassVar, ParamSpec, Self, TypeVar, cast

from textual import events
from textual.app import ComposeResult
from textual.screen import Screen

from explorer.tui.widgets.header import ModeBar, RunLine
from explorer.tui.widgets.key_line import KeyLine

if TYPE_CHECKING:
    from textual.geometry import Region

    from explorer.analysis.run import Run
    from explorer.tui.app import ExplorerApp
    from explorer.tui.data import Data, LaneName

T = TypeVar("T")
P = ParamSpec("P")


def when_ready(method: Callable[P, None]) -> Callable[P, None]:
    """For methods that other screens call: right after the first switch to a screen its widgets are not there yet, so
    the call waits for them."""

    @wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> None:
        screen = args[0]
        assert isinstance(screen, ExplorerScreen)
        if screen.ready:
            method(*args, **kwargs)
        else:
            screen.waiting.append(partial(method, *args, **kwargs))

    return call


class ExplorerScreen(Screen[None]):
    """One screen of the explorer. Subclasses give `body()` and `load()`; `NAME` is its mode, `ABOUT` its help text."""

    NAME: ClassVar[str] = ""
    ABOUT: ClassVar[str] = ""
    AUTO_FOCUS = ""
    _needs_no_refresh = False

    @property
    def explorer(self) -> ExplorerApp:
        """The app, as what it is."""
        return cast("ExplorerApp", self.app)

    def __init__(self) -> None:
        super().__init__()
        self.ready = False
        self.waiting: list[Callable[[], None]] = []
        self.up_to_date = False
        """What the screen shows, or has asked for, is of the run as it is open now"""
        self.drawn_ahead = False
        """Coming to the front has drawn the screen already"""
        self._drawn_in = self.app.theme
        # A new screen takes its styles when it is mounted. Were it to seem outdated, its first two visits would parse all
        # style sheets again, a tenth of a second each.
        self._css_update_count = self.app._css_update_count
        # Known before the widgets are made; found out at their first layout, it would style every widget once more.
        self.set_class(True, *self._sizes())

    def _sizes(self) -> set[str]:
        width, height = self.app.size
        return self._get_breakpoint_classes(
            width, self.app.HORIZONTAL_BREAKPOINTS or []
        ) | self._get_breakpoint_classes(height, self.app.VERTICAL_BREAKPOINTS or [])

    def compose(self) -> ComposeResult:
        yield RunLine()
        yield ModeBar(self.explorer.mode_list(), self.NAME)
        yield from self.body()
        yield KeyLine()

    def body(self) -> ComposeResult:
        """The widgets between the list of screens and the footer."""
        yield from ()

    def load(self) -> None:
        """Ask for what the screen shows. Called when it is in front and the run is open, and again when that has grown."""

    def on_mount(self) -> None:
        self.call_after_refresh(self._became_ready)
        self.show_run()

    def on_screen_resume(self, event: events.ScreenResume) -> None:
        # Styles change with the theme and the size, and both see to them: styling every widget at every visit would take
        # longer than all the rest of it.
        event.refresh_styles = False
        if self.explorer.current_mode == self.NAME:
            self.restyle()
            self.show_keys()
            self.bring_up_to_date()
        # What the library does next is to draw everything anew.
        self._needs_no_refresh, self.drawn_ahead = self.drawn_ahead, False

    def refresh(
        self, *regions: Region, repaint: bool = True, layout: bool = False, recompose: bool = False
    ) -> Self:
        needed, self._needs_no_refresh = not self._needs_no_refresh, False
        if needed or regions or layout or recompose:
            super().refresh(*regions, repaint=repaint, layout=layout, recompose=recompose)
        return self

    def bring_up_to_date(self) -> None:
        """Ask for what the screen shows, unless that is there or on its way. Screens that nobody looks at ask for nothing."""
        if self.explorer.data is not None and not self.up_to_date:
            self.up_to_date = True
            self.load()

    def restyle(self) -> None:
        """Draw what was drawn in the colours of another theme anew."""
        if self._drawn_in != self.app.theme:
            self._drawn_in = self.app.theme
            self.show_run()
            if self.up_to_date:
                self.show_again()

    def show_again(self) -> None:
        """Show the answers once more: the theme has changed."""
        self.load()

    def _became_ready(self) -> None:
        self.ready = True
        waiting, self.waiting = self.waiting, []
        for call in waiting:
            call()
        self.app.call_next(self.explorer.take_waiting_keys)

    def show_looking(self) -> None:
        """Show how far looking for bottlenecks is, where they will stand. For screens that list them."""

    def show_keys(self) -> None:
        """Show all keys in the footer, or a line of them."""
        self.query_one(KeyLine).all_keys = self.explorer.all_keys

    def show_run(self) -> None:
        """Bring the run's line up to date."""
        line = self.query_one(RunLine)
        line.run_name, line.facts = self.explorer.run_name, self.explorer.facts
        line.errors, line.warnings = self.explorer.error_count, self.explorer.warning_count

    @property
    def data(self) -> Data:
        if self.explorer.data is None:
            raise RuntimeError("asked before the run was open")
        return self.explorer.data

    def ask(
        self,
        group: str,
        call: Callable[[Run], T],
        then: Callable[[T], None],
        *,
        key: Hashable = None,
        failed: Callable[[str], None] | None = None,
        lane: LaneName = "main",
    ) -> None:
        """See `Data.ask`."""
        self.data.ask(self, group, call, then, key=key, failed=failed, lane=lane)

    def copy(self, text: str, what: str) -> None:
        """Put text on the clipboard of the user's own terminal (OSC 52)."""
        self.app.copy_to_clipboard(text)
        self.app.notify(f"Copied {what}.", timeout=2, markup=False)
