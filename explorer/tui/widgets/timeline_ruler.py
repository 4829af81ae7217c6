"""The two lines above the timeline: round times, and where steps and marks are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from explorer.tui import units
from explorer.tui.widgets.timeline_window import TimeWindow

_NICE = (1, 2, 5)
CELLS_PER_TICK = 16


def ruler_ticks(offset_ns: int, span_ns: int, cells: int) -> list[tuple[int, str]]:
    """Round times in a window that begins `offset_ns` after the start of the recording: (offset, text), about one
    every sixteen cells."""
    wanted = max(1, span_ns * CELLS_PER_TICK // max(1, cells))
    power = 1
    while power * 10 <= wanted:
        power *= 10
    step = next((power * nice for nice in _NICE if power * nice >= wanted), power * 10)
    first = -(-offset_ns // step) * step
    return [(time_ns, units.duration(time_ns)) for time_ns in range(first, offset_ns + span_ns + 1, step)]


def times_line(window: TimeWindow, cells: int) -> str:
    """Round times since the start of the recording."""
    line = [" "] * cells
    for offset_ns, text in ruler_ticks(window.start_ns - window.low_ns, window.span_ns, cells):
        _put(line, window.cell_of(offset_ns + window.low_ns, cells), "╷" + text)
    return "".join(line)


def steps_line(
    window: TimeWindow, cells: int, steps: Iterable[Mapping[str, Any]], marks: Iterable[int]
) -> str:
    """Where steps begin, with their numbers as far as there is room, and marks."""
    line = [" "] * cells
    last = -1
    for step in steps:
        first = window.cell_of(step["start_ns"], cells)
        end = window.cell_of(step["start_ns"] + step["duration_ns"], cells)
        if end < 0 or first > cells or max(first, 0) < last:
            continue
        room = min(end, cells) - max(first, 0)
        text = f"step {step['step']}"
        if room < len(text) + 1:
            text = str(step["step"])
        if first >= 0 or room > len(text) + 1:
            _put(line, max(first, 0), ("│" if first >= 0 else "") + (text if room > len(text) else ""))
        last = max(first, 0) + 1
    for mark in marks:
        _put(line, window.cell_of(mark, cells), "◆")
    return "".join(line)


def _put(line: list[str], at: int, text: str) -> None:
    for offset, character in enumerate(text):
        if 0 <= at + offset < len(line):
            line[at + offset] = character
