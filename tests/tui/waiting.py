"""Waits for what a test needs to see, however long a busy machine takes for it."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import Any

from textual.pilot import Pilot

LONGEST_SECONDS = 120.0


async def until(pilot: Pilot[Any], there: Callable[[], object]) -> None:
    """Wait until `there()` is true; fails where it never is."""
    end = monotonic() + LONGEST_SECONDS
    while not there():
        assert monotonic() < end, f"did not come true in {LONGEST_SECONDS} s"
        await pilot.pause(0.02)
