"""An event that our own recorders saw on a host thread: garbage collection, file I/O, a collective, a pause."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class HostEvent:
    """Times are time.time_ns(); `attributes` is JSON text; `line` (file, line, function) is the responsible line where
    that is not the one that was executing."""

    native_id: int
    category: str
    name: str
    start_ns: int
    duration_ns: int
    attributes: str | None = None
    size_bytes: int | None = None
    line: tuple[str, int, str] | None = None
