"""Keys that come before the screen they are meant for is there: they wait for it, in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import events

from explorer.tui.screens.frame import ExplorerScreen

if TYPE_CHECKING:
    from explorer.tui.app import ExplorerApp

AT_ONCE = ("ctrl+q", "ctrl+c")


class TypedAhead:
    """Holds keys back while the screen in front is being made."""

    def __init__(self, app: ExplorerApp) -> None:
        self._app = app
        self._held: list[events.Key] = []

    def holds(self, event: events.Event) -> bool:
        """Whether this is a key that has to wait; it is kept then."""
        if not isinstance(event, events.Key) or event.key in AT_ONCE:
            return False
        if self._held or not self._can_take():
            self._held.append(event)
            return True
        return False

    def next_key(self) -> events.Key | None:
        """The longest waiting key, once its screen is there."""
        return self._held.pop(0) if self._held and self._can_take() else None

    def _can_take(self) -> bool:
        screen = self._app.screen
        if self._app.opening is not None:
            return False
        if isinstance(screen, ExplorerScreen):
            return screen.ready
        return self._app.current_mode != "_default"  # a dialog
