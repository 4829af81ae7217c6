"""What the first screen asks, computed once for a run, whoever asks first: the start of the program or the screen."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from explorer.analysis.key_figures import Overview
    from explorer.analysis.run import Run

_turn = Lock()
_known: WeakKeyDictionary[Run, Overview] = WeakKeyDictionary()


def first_answer(run: Run) -> Overview:
    """The overview of a run. A second caller waits for the first one's answer; where that failed, it asks itself."""
    from explorer.analysis.key_figures import overview

    with _turn:
        if run not in _known:
            _known[run] = overview(run)
        return _known[run]
