"""Draws a screen without a terminal: for documentation, tests and bug reports."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from explorer.model.errors import UsageError

if TYPE_CHECKING:
    from textual.app import App
    from textual.pilot import Pilot

    from explorer.analysis.run import Run

DEFAULT_SIZE = (120, 36)
QUIET_POLLS = 4
POLL_SECONDS = 0.05
LONGEST_WAIT_SECONDS = 120.0


_FONT_FACE = re.compile(r"\s*@font-face \{.*?\}", re.DOTALL)
_FONTS = "'DejaVu Sans Mono', Menlo, Consolas, 'Liberation Mono', monospace"


def picture(app: App[Any], title: str = "") -> str:
    """The current screen as SVG that needs nothing from elsewhere: no web fonts, and names that do not change."""
    svg = _FONT_FACE.sub("", app.export_screenshot(title=title))
    svg = re.sub(r"font-family: ?Fira Code[^;}]*", f"font-family: {_FONTS}", svg)
    svg = re.sub(r"\s*<!--.*?-->", "", svg, flags=re.DOTALL)
    # Spaces keep their width wherever the picture is shown.
    svg = svg.replace("<svg ", '<svg xml:space="preserve" ', 1)
    return re.sub(r"terminal-\d+-", "terminal-", svg)


async def settle(pilot: Pilot[Any]) -> None:
    """Wait until the run is open and every question asked has its answer on screen."""
    from explorer.tui.app import ExplorerApp

    app = pilot.app
    assert isinstance(app, ExplorerApp)
    quiet, waited = 0, 0.0
    while quiet < QUIET_POLLS and waited < LONGEST_WAIT_SECONDS and app.failure is None and app.crash is None:
        await pilot.pause(POLL_SECONDS)
        waited += POLL_SECONDS
        busy = app.data is None or app.moving or any(not worker.is_finished for worker in app.workers)
        quiet = 0 if busy else quiet + 1


def parse_size(text: str) -> tuple[int, int]:
    """'120x36' as columns and rows. Raises UsageError."""
    match = re.fullmatch(r"(\d{2,3})x(\d{1,3})", text.strip().lower())
    if not match or int(match[1]) < 20 or int(match[2]) < 5:
        raise UsageError(f"{text!r} is not a size.", "Give columns x rows, such as 120x36.")
    return int(match[1]), int(match[2])


def save_screenshot(
    open_run: Callable[[], Run],
    path: str,
    *,
    run_name: str = "",
    screen: str = "overview",
    size: tuple[int, int] = DEFAULT_SIZE,
    theme: str | None = None,
    press: Iterable[str] = (),
    baseline: Callable[[], Run] | None = None,
) -> None:
    """Draw one screen to an SVG file.

    Args:
        open_run: opens the run.
        path: the file to write.
        run_name: shown in the title until the run is open.
        screen: name of the screen.
        size: columns and rows.
        theme: name of a theme; None: the default one.
        press: keys to press first.
        baseline: a second run, for the compare screen.

    Raises:
        UsageError: no such screen or theme, or the file cannot be written.
        InputError: the run cannot be opened.
    """
    from explorer.tui.app import ExplorerApp
    from explorer.tui.modes import SCREENS

    if screen not in SCREENS:
        raise UsageError(f"There is no screen {screen!r}.", f"Choose one of: {', '.join(SCREENS)}.")
    app = ExplorerApp(open_run, run_name, screen=screen, baseline=baseline, follow=False)
    if theme is not None:
        if theme not in app.available_themes:
            raise UsageError(
                f"There is no theme {theme!r}.", f"Choose one of: {', '.join(app.available_themes)}."
            )
        app.theme = theme
    drawn: list[str] = []

    async def take(pilot: Pilot[Any]) -> None:
        await settle(pilot)
        for key in press:
            await pilot.press(key)
            await settle(pilot)
        if app.failure is None and app.crash is None:
            drawn.append(picture(app, f"neuron-explorer {app.run_name}"))
        app.exit()

    app.run(headless=True, size=size, auto_pilot=take)
    if app.failure is not None:
        raise app.failure
    if app.crash is not None:
        raise app.crash
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(drawn[0])
    except OSError as error:
        raise UsageError(f"Cannot write {path}: {error.strerror}.", "Choose another file.") from error
