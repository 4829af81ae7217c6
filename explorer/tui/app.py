"""The terminal UI: opens a run in the background, and holds one screen per question."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterable
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, Any

from textual import events, work
from textual.app import App, ScreenStackError, SystemCommand
from textual.css.query import NoMatches
from textual.screen import Screen
from textual.system_commands import SystemCommandsProvider

from explorer.model.errors import ExplorerError
from explorer.tui.app_keys import APP_KEYS
from explorer.tui.commands import ActionCommands
from explorer.tui.data import Data, Finder, FindHere
from explorer.tui.modes import MODULES, SCREEN_KEYS, SCREENS
from explorer.tui.screens.frame import ExplorerScreen
from explorer.tui.theme import DEFAULT_THEME, SIXTEEN_COLORS, THEMES, css_variables
from explorer.tui.themed_styles import ThemedStyles
from explorer.tui.threads import QuestionThreads
from explorer.tui.typed_ahead import KeyTaken, Typed, TypedAhead
from explorer.tui.widgets.header import ModeBar

if TYPE_CHECKING:
    from textual.widget import AwaitMount

    from explorer.analysis.run import Run

FOLLOW_SECONDS = 2.0
THEME_NAME_SECONDS = 0.1


def _open_directory(path: str) -> Run:
    from explorer.analysis.run import open_run

    return open_run(path)


class ExplorerApp(App[None]):
    """Shows one run.

    Args:
        open_run: opens the run; called in a worker thread, again when the run has grown.
        run_name: shown until the run is open.
        screen: name of the first screen.
        baseline: opens a second run to compare with.
        follow: look for more while the run is being written.
        open_path: opens a run or trace that the user names; None: runs only.
        report: writes a report of an unexpected error of an analysis and returns its path, and the app goes on without
            that answer; None: such an error ends the app.
        threads: where questions run; None: threads of its own.
        find: looks for bottlenecks; None: in this process.
        load_ahead: make all screens once the first is shown and no key is pressed. Their code is imported in a thread: not
            for processes that change what they import, as a test runner does.
    """

    CSS_PATH = "styles.tcss"
    TITLE = "neuron-explorer"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (110, "-wide")]
    VERTICAL_BREAKPOINTS = [(0, "-short"), (30, "-medium"), (46, "-tall")]
    MODES = {name: make for name, (_, _, _, make) in SCREENS.items()}
    COMMANDS = {SystemCommandsProvider, ActionCommands}
    COMMAND_PALETTE_DISPLAY = "Ctrl+P"
    BINDINGS = [*APP_KEYS]

    def __init__(
        self,
        open_run: Callable[[], Run],
        run_name: str = "",
        *,
        screen: str = "overview",
        baseline: Callable[[], Run] | None = None,
        follow: bool = True,
        open_path: Callable[[str], Run] | None = None,
        report: Callable[[BaseException], object] | None = None,
        threads: QuestionThreads | None = None,
        find: Finder | None = None,
        load_ahead: bool = False,
    ) -> None:
        super().__init__()
        self.stylesheet: ThemedStyles = ThemedStyles(variables=self.get_css_variables())
        # A key is answered by the screen as it will be; pictures on the way there cost time, and bandwidth over ssh.
        self.animation_level = "none"
        self._open_run = open_run
        self.open_baseline = baseline
        self._report = report
        self.open_path: Callable[[str], Run] = open_path or _open_directory
        self.run_name = run_name
        self.first_screen = screen
        self.follow = follow
        self.data: Data | None = None
        self.threads = threads or QuestionThreads()
        self.find: Finder = find or FindHere()
        self._load_ahead, self._screens_ahead = load_ahead, False
        self._typed_ahead = TypedAhead(self)
        self.opening: str | None = None
        """The screen that is made next"""
        self._holds_pictures = True
        self.looking = "Looking for bottlenecks…"
        """Stands where findings will be"""
        self.all_keys = False
        """Whether the footer shows every key"""
        self.last_key_s = 0.0
        """When the last key or mouse event came, in seconds of the monotonic clock"""
        self.shared_window: tuple[int, int, int] | None = None
        """Rank, start and end in ns of what the timeline and the counters show"""
        self.facts = ""
        self.error_count, self.warning_count = 0, -1
        self.crash: BaseException | None = None
        self.failure: ExplorerError | None = None
        for theme in THEMES:
            self.register_theme(theme)
        self.theme = DEFAULT_THEME

    def mode_list(self) -> list[tuple[str, str, str, str]]:
        """(name, key, title, short title) of every screen."""
        return [(name, key, title, short) for name, (key, title, short, _) in SCREENS.items()]

    def get_css_variables(self) -> dict[str, str]:
        self.theme_variables = css_variables(self.current_theme)
        return self.theme_variables

    # Opening

    def on_mount(self) -> None:
        few_colors = self.console.color_system in ("standard", "windows")
        if few_colors and not self.is_headless and self.theme == DEFAULT_THEME:
            self.theme = SIXTEEN_COLORS
        asyncio.get_running_loop().set_default_executor(self.threads)
        self.switch_mode(self.first_screen)
        self._stop_on_signals()
        self._open()

    def _stop_on_signals(self) -> None:
        """A terminal that goes away, or a polite kill, ends the app with the terminal restored."""
        loop = asyncio.get_running_loop()
        for name in ("SIGTERM", "SIGHUP"):
            if hasattr(signal, name):
                try:
                    loop.add_signal_handler(getattr(signal, name), self.exit)
                except (NotImplementedError, RuntimeError, ValueError):
                    return

    @work(thread=True, group="open", exclusive=True)
    def _open(self) -> None:
        from explorer.analysis.run_facts import run_facts

        try:
            run = self._open_run()
            facts = run_facts(run)
        except ExplorerError as error:
            self.call_from_thread(self._opening_failed, error)
            return
        self.call_from_thread(self._opened, run, facts)

    def _opening_failed(self, error: ExplorerError) -> None:
        if self.data is None:
            self.failure = error
            self.exit()
        else:
            self.notify(str(error), severity="error", markup=False)

    def _opened(self, run: Run, facts: Any) -> None:
        first = self.data is None
        if self.data is not None:
            self.data.close()
        self.data = Data(run, self._open_run, self.find, self._broken if self._report else None, self._told)
        self.run_name = facts.name
        self.facts = facts.sentence if facts.finished else f"being written · {facts.sentence}"
        self.error_count, self.warning_count = facts.errors, facts.warnings
        for screen in self.explorer_screens():
            screen.show_run()
            screen.up_to_date = False
            if screen is self._screen_in_front():
                screen.bring_up_to_date()
        if first and self.first_screen != "overview":
            self.load_screens()
        if self.follow and not facts.finished and first:
            self.notify("The run is still being written: following it.", timeout=4)
        if self.follow and not facts.finished:
            self.set_timer(FOLLOW_SECONDS, self._look_again)

    def _told(self, asked: int, of: int, found: int) -> None:
        """How far looking for bottlenecks is; called in its thread."""
        so_far = f", {found} finding{'s' * (found != 1)} so far" if found else ""
        self.looking = f"Looking for bottlenecks: rule {asked + 1} of {of}{so_far}…"
        with suppress(RuntimeError):  # the app has ended meanwhile
            self.call_from_thread(self._show_looking)

    def _show_looking(self) -> None:
        for screen in self.explorer_screens():
            screen.show_looking()

    def load_screens(self) -> None:
        """Make the other screens while the first one is being read, so that they open at once."""
        if self._load_ahead:
            self._load_ahead, self._screens_ahead = False, True
            from explorer.tui.screens_ahead import make_ahead

            self.run_worker(make_ahead(self, MODULES), group="screens ahead")

    def switch_mode(self, mode: str) -> AwaitMount:
        """Go to a screen. One that has been made is drawn at once: the library would hold every picture back for a
        twentieth of a second, to hide how a screen comes to be, and draw it twice."""
        there = self.made(mode) and mode != self.current_mode
        drawn = there and self.screen_of(mode).stack_updates > 0 and not self._batch_count
        self._holds_pictures = not there
        try:
            mounted = super().switch_mode(mode)
        finally:
            self._holds_pictures = True
        if there:
            self.screen_of(mode).drawn_ahead = drawn
        return mounted

    def delay_update(self, delay: float = 0.05) -> None:
        if self._holds_pictures:
            super().delay_update(delay)

    def made(self, name: str) -> bool:
        """Whether this screen has been made."""
        return bool(self._screen_stacks.get(name))

    def make_screen(self, name: str) -> AwaitMount:
        """Make a screen without going there."""
        return self._init_mode(name)

    def screen_of(self, name: str) -> ExplorerScreen:
        """A screen that has been made."""
        screen = self._screen_stacks[name][0]
        assert isinstance(screen, ExplorerScreen)
        return screen

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.InputEvent):
            self.last_key_s = monotonic()
        if not self._typed_ahead.holds(event):
            await self._take(event)

    async def _take(self, event: events.Event) -> None:
        if not isinstance(event, Typed) or event.is_forwarded:
            await super().on_event(event)
        elif isinstance(event, events.Key) and (name := self._screen_by_key(event)):
            # Before the keys that follow it: they are meant for the new screen.
            self._go_by_key(name)
        else:
            target = self.focused or self.screen
            await super().on_event(event)
            self._typed_ahead.sent(target)

    def on_key_taken(self, message: KeyTaken) -> None:
        self._typed_ahead.taken(message.number)

    def _go_by_key(self, name: str) -> None:
        """Go to a screen; to one that has yet to be made once the list of screens has said so: making it takes longer than
        a key may wait for its answer."""
        front = self.screen
        if self.made(name) or not isinstance(front, ExplorerScreen):
            self.switch_mode(name)
            return
        self.opening = name
        front.query_one(ModeBar).mark(name)
        front.call_after_refresh(self._open_marked, front, name)

    @property
    def moving(self) -> bool:
        """Whether the screen in front is still being made, or a key waits."""
        made = getattr(self._screen_in_front(), "ready", True)
        return self.opening is not None or not made or self._typed_ahead.waiting

    def _open_marked(self, front: ExplorerScreen, name: str) -> None:
        self.opening = None
        self.switch_mode(name)
        front.query_one(ModeBar).mark(front.NAME)

    async def take_waiting_keys(self) -> None:
        """Take the keys that came too early for it."""
        while event := self._typed_ahead.next_key():
            await self._take(event)

    def _screen_by_key(self, event: events.Key) -> str | None:
        """Name of the screen that a key leads to, unless it is text or a dialog is in front."""
        name = SCREEN_KEYS.get(event.key)
        typing = self.focused is not None and self.focused.check_consume_key(event.key, event.character)
        return name if isinstance(self.screen, ExplorerScreen) and not typing else None

    @work(thread=True, group="follow", exclusive=True)
    def _look_again(self) -> None:
        from explorer.analysis.run_facts import grown

        if self.data is None:
            return
        if grown(self.data.run):
            self.call_from_thread(self._open)
        else:
            self.call_from_thread(self.set_timer, FOLLOW_SECONDS, self._look_again)

    def _broken(self, error: BaseException) -> str:
        path = self._report(error) if self._report else None
        where = f" Details are in {path}." if path else ""
        return f"This answer failed: {type(error).__name__}: {' '.join(str(error).split())[:200]}. This is a bug.{where}"

    def explorer_screens(self) -> list[ExplorerScreen]:
        """Every screen made so far."""
        stacks = [screen for stack in self._screen_stacks.values() for screen in stack]
        return [screen for screen in stacks if isinstance(screen, ExplorerScreen) and screen.is_mounted]

    def go_to(self, name: str) -> ExplorerScreen:
        """Switch to a screen and return it."""
        self.switch_mode(name)
        return self.screen_of(name)

    def source_roots(self) -> list[str]:
        """Where the user's source may lie: the run's recorded folder, the run's own place, the working directory."""
        if self.data is None:
            return []
        from explorer.analysis.run_facts import source_roots

        return source_roots(self.data.run)

    # Actions

    def action_go(self, name: str) -> None:
        self.switch_mode(name)

    def action_all_keys(self) -> None:
        self.all_keys = not self.all_keys
        if isinstance(screen := self._screen_in_front(), ExplorerScreen):
            screen.show_keys()

    def action_help(self) -> None:
        from explorer.tui.screens.help import HelpScreen

        if isinstance(self.screen, HelpScreen):
            self.pop_screen()
        elif isinstance(self.screen, ExplorerScreen):
            self.push_screen(HelpScreen(self.screen.ABOUT, self.screen))

    def action_next_theme(self) -> None:
        names = [theme.name for theme in THEMES]
        here = names.index(self.theme) if self.theme in names else -1
        self.theme = names[(here + 1) % len(names)]
        # Said once the theme is there: the message costs as much as the theme.
        self.set_timer(THEME_NAME_SECONDS, lambda: self.notify(f"Theme: {self.theme}", timeout=2))

    def watch_theme(self, theme: str) -> None:
        # Other screens notice when they come to the front.
        if isinstance(screen := self._screen_in_front(), ExplorerScreen) and screen.is_mounted:
            for widget in screen.query("*"):
                widget.refresh()
            screen.restyle()
        if self._screens_ahead:
            from explorer.tui.screens_ahead import style_ahead

            self.run_worker(style_ahead(self), group="styles ahead", exclusive=True)

    def _screen_in_front(self) -> Screen[Any] | None:
        """The screen of the current mode, under any dialog."""
        stack = self._screen_stacks.get(self.current_mode, [])
        return stack[0] if stack else None

    def action_save_picture(self) -> None:
        from explorer.tui.screenshot import picture

        path = f"neuron-explorer-{self.current_mode}.svg"
        try:
            with open(path, "w", encoding="utf-8") as file:
                file.write(picture(self, f"neuron-explorer {self.run_name}"))
        except OSError as error:
            self.notify(f"Cannot write {path}: {error.strerror}.", severity="error", markup=False)
            return
        self.notify(f"Saved {path}", markup=False)

    def action_redraw(self) -> None:
        self.refresh(layout=True)

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        yield SystemCommand(
            "Choose a theme", "Dark, light, colour-blind-safe and the library's own", self.action_change_theme
        )

    # Ending

    def _handle_exception(self, error: Exception) -> None:
        """Leave the terminal as it was; whoever called `run_app` gets the error and reports it."""
        if isinstance(error, NoMatches | ScreenStackError) and not self.is_running:
            return  # an app that ends takes its widgets away from under messages that are on their way
        self.crash = self.crash or error
        self._return_code = 1
        if self._exception is None:
            self._exception = error
            self._exception_event.set()
        self._close_messages_no_wait()
