"""Keys that come faster than they are answered: each waits until the one before it has done its work, and until the screen it is
meant for is there."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from textual import events
from textual.message import Message

from explorer.tui.screens.frame import ExplorerScreen

if TYPE_CHECKING:
    from textual.dom import DOMNode

    from explorer.tui.app import ExplorerApp

AT_ONCE = ("ctrl+q", "ctrl+c")
AGAIN_SECONDS, LONGEST_ROUNDS = 0.04, 50
"""How often to look whether the widget that a key went to is gone, which cannot say then that it has had it, and how many times
before the others wait no longer"""

Typed = events.Key | events.Paste


class KeyTaken(Message):
    """Follows a key through the widgets up to the app, and arrives there when each has had it."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


class TypedAhead:
    """Holds keys back while the screen in front is being made, and while a key is under way.

    The library hands a key to the focused widget and, unless that takes it, from widget to widget up to the bindings. The next
    key sets out before the first one has arrived: text typed behind a key that selects everything would be selected with it,
    and the key that runs a statement would run it without its last letters.
    """

    def __init__(self, app: ExplorerApp) -> None:
        self._app = app
        self._held: list[Typed] = []
        self._sent, self._under_way = 0, False

    def holds(self, event: events.Event) -> bool:
        """Whether this is a key that has to wait; it is kept then."""
        if not isinstance(event, Typed) or event.is_forwarded:
            return False
        if isinstance(event, events.Key) and event.key in AT_ONCE:
            return False
        if not self._held and self._can_take():
            return False
        self._held.append(event)
        screen = self._app.screen
        if not isinstance(screen, ExplorerScreen) and not screen.is_mounted:
            screen.call_after_refresh(self._app.call_next, self._app.take_waiting_keys)
        return True

    def next_key(self) -> Typed | None:
        """The longest waiting key, once it may be taken."""
        return self._held.pop(0) if self._held and self._can_take() else None

    @property
    def waiting(self) -> bool:
        """Whether a key waits or is under way."""
        return bool(self._held) or self._under_way

    def sent(self, target: DOMNode) -> None:
        """A key went to this widget: the others wait until it has been taken."""
        self._sent += 1
        self._under_way = target.post_message(KeyTaken(self._sent))
        if self._under_way:
            self._look_again(self._sent, target, LONGEST_ROUNDS)

    def _look_again(self, number: int, target: DOMNode, rounds: int) -> None:
        if not self._under_way or number != self._sent:
            return
        if rounds and target.is_attached:
            loop = asyncio.get_running_loop()
            loop.call_later(AGAIN_SECONDS, self._look_again, number, target, rounds - 1)
        else:
            self.taken(number)

    def taken(self, number: int) -> None:
        """The key of this number has done its work, or has had long enough for it."""
        if self._under_way and number == self._sent:
            self._under_way = False
            if self._held:
                self._app.call_next(self._app.take_waiting_keys)

    def _can_take(self) -> bool:
        screen = self._app.screen
        if self._under_way or self._app.opening is not None:
            return False
        if isinstance(screen, ExplorerScreen):
            return screen.ready
        # A dialog, whose field has the focus once it is mounted.
        return self._app.current_mode != "_default" and screen.is_mounted
