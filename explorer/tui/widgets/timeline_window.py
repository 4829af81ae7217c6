"""The part of a recording that the timeline shows: zooming and panning, and where a time stands on screen."""

from __future__ import annotations

SMALLEST_NS = 50
"""The shortest window that can be shown."""


class TimeWindow:
    """`start_ns` to `end_ns` of a recording that lasts from `low_ns` to `high_ns`."""

    def __init__(self, low_ns: int = 0, high_ns: int = 1) -> None:
        self.low_ns, self.high_ns = low_ns, high_ns
        self.start_ns, self.end_ns = low_ns, high_ns

    @property
    def span_ns(self) -> int:
        return self.end_ns - self.start_ns

    @property
    def middle_ns(self) -> int:
        return (self.start_ns + self.end_ns) // 2

    def show(self, start_ns: int, end_ns: int) -> None:
        """Exactly these times, kept inside the recording as far as possible."""
        whole = self.high_ns - self.low_ns
        span = max(min(end_ns - start_ns, whole), min(SMALLEST_NS, whole), 1)
        self.start_ns = max(self.low_ns, min(start_ns, self.high_ns - span))
        self.end_ns = self.start_ns + span

    def zoom_at(self, factor: float, time_ns: int) -> None:
        """Zoom around a time, which stays where it is on screen."""
        wanted = max(SMALLEST_NS, round(self.span_ns / factor))
        left = round((time_ns - self.start_ns) / max(1, self.span_ns) * wanted)
        self.show(time_ns - left, time_ns - left + wanted)

    def pan(self, part: float) -> None:
        """Move by a part of the window; to the left where it is negative."""
        by = round(self.span_ns * part)
        self.show(self.start_ns + by, self.end_ns + by)

    def time_at(self, cell: int, cells: int) -> int:
        """The time at the left edge of one of `cells` cells."""
        return self.start_ns + self.span_ns * max(0, min(cell, cells)) // cells

    def cell_of(self, time_ns: int, cells: int) -> int:
        """The cell of a time; it may lie outside the window."""
        return (time_ns - self.start_ns) * cells // max(1, self.span_ns)
