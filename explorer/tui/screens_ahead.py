"""Makes the other screens while nobody presses a key, so that the first visit of each is answered as fast as the later ones.

A screen costs a tenth of a second when it is first shown: its code is imported, its widgets are made, styled, laid out and
drawn. Here that happens beforehand in pieces, each of a few milliseconds, with a pause after each in which keys are answered;
a key puts the rest off until it is quiet again. Screens made ahead ask the run for nothing before somebody looks at them.
"""

from __future__ import annotations

import asyncio
import gc
from importlib import import_module
from time import monotonic
from typing import TYPE_CHECKING

from textual.css.query import NoMatches
from textual.geometry import Region
from textual.widget import Widget

from explorer.tui.theme import THEMES, css_variables

if TYPE_CHECKING:
    from explorer.tui.app import ExplorerApp
    from explorer.tui.screens.frame import ExplorerScreen

QUIET_SECONDS = 0.1
"""Without a key for so long, the next screen is begun."""
PAUSE_SECONDS = 0.01
SOON_WANTED = (
    "explorer.tui.screens.help",
    "explorer.tui.screens.health",
    "explorer.analysis.timeline",
    "explorer.analysis.event_details",
    "explorer.analysis.source_view",
    "explorer.analysis.line_efficiency",
    "explorer.analysis.file_tree",
    "explorer.analysis.table_rows",
    "explorer.analysis.flame",
    "explorer.analysis.finding_what_if",
    "explorer.analysis.memory_view",
    "explorer.analysis.rank_view",
    "explorer.analysis.counter_view",
    "explorer.analysis.completion",
    "rich.syntax",
    "pygments.lexers.python",
    "pygments.styles.onedark",
)
"""What screens import at their first question or action"""


async def make_ahead(app: ExplorerApp, modules: dict[str, str]) -> None:
    """Make every screen that is not there yet. `modules`: where the code of each lies, by its name."""
    for name, module in modules.items():
        await asyncio.to_thread(import_module, module)
        await _quiet(app)
        if not app.made(name):
            await app.make_screen(name)
            await _pause()
        await _draw_ahead(app, app.screen_of(name))
    for module in SOON_WANTED:
        await _quiet(app)
        await asyncio.to_thread(import_module, module)
    await _parse_ahead(app)
    # Looking for garbage among all this would stop the keys for longer than they may wait.
    gc.freeze()


async def _parse_ahead(app: ExplorerApp) -> None:
    """Parse the style sheets for every theme that a key leads to."""
    for theme in THEMES:
        await _quiet(app)
        for _ in app.stylesheet.parse_ahead(css_variables(theme)):
            await asyncio.sleep(0)
            await _quiet(app)


async def style_ahead(app: ExplorerApp) -> None:
    """Give the screens in the back the styles of a new theme."""
    for screen in app.explorer_screens():
        await _quiet(app)
        if screen.is_current or screen._css_update_count == app._css_update_count:
            continue
        wanted = app._css_update_count
        for widget in list(screen.walk_children(with_self=True)):
            app.stylesheet.update_nodes([widget])
            await asyncio.sleep(0)
            if screen.is_current:
                break  # the library has styled it when it came to the front
        else:
            screen._css_update_count = wanted
            await _draw_ahead(app, screen)
        await _pause()


async def _draw_ahead(app: ExplorerApp, screen: ExplorerScreen) -> None:
    """Lay the screen out and draw its widgets once: the library keeps what it has found out."""
    for _ in range(2):  # sizes known from the first layout may change the second
        await _quiet(app)
        if screen.is_current or not screen.is_attached:
            return
        screen._refresh_layout(app.size)
        screen._layout_required = False
        await _pause()
    for widget in list(screen.walk_children(Widget)):
        await _quiet(app)
        if screen.is_current or not screen.is_attached:
            return
        _draw(widget)
        await asyncio.sleep(0)


def _draw(widget: Widget) -> None:
    try:
        size = widget.outer_size
    except NoMatches:
        return
    if size and widget.is_mounted and widget.visible:
        widget.render_lines(Region(0, 0, size.width, size.height))


async def _pause() -> None:
    await asyncio.sleep(PAUSE_SECONDS)


async def _quiet(app: ExplorerApp) -> None:
    """Until the last key is some time ago."""
    while (wait := app.last_key_s + QUIET_SECONDS - monotonic()) > 0:
        await asyncio.sleep(wait)
