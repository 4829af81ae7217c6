"""What a capture was asked to do."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

WINDOW_EVENTS = 200_000
"""Target number of events of one window: about half a second to hand over, about 0.3 GB while it is being read."""


@dataclass(frozen=True, slots=True)
class CaptureSettings:
    """Arguments of `neuron_profile`; see there for their meaning."""

    directory: str
    activities: Iterable[Any] | None = None
    schedule: Callable[[int], Any] | None = None
    record_shapes: bool | Literal["sample"] = "sample"
    profile_memory: bool = False
    lines: bool = True
    modules: bool = True
    telemetry: bool = True
    device_profile: bool = False
    sources: bool = True
    threads: Literal["main", "all"] = "main"
    max_events: int = 1_000_000
    rank: int | None = None
    compat: bool = False
    on_run_ready: Callable[[str], Any] | None = None
    window_events: int = WINDOW_EVENTS
    user_code: tuple[str, ...] = ()
    library_code: tuple[str, ...] = ()
    lazy: bool = False
    """Make the run only when there is something to write (the `record` command, which sees launchers as well)."""
