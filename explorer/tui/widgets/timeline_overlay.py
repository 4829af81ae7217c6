"""What the timeline draws over its events: the ends of a range, marks, and the launch arrow."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

Overlay = dict[int, tuple[str, str]]
"""Character and colour by cell."""


@dataclass(frozen=True)
class Arrow:
    """From the launching call to the event it started: row indices, and the cells of the two starts."""

    from_row: int
    to_row: int
    from_cell: int
    to_cell: int


def draw_lines(
    overlay: Overlay, range_cells: tuple[int, int] | None, mark_cells: Iterable[int], inks: dict[str, str]
) -> None:
    """The ends of the range and the marks, on every line."""
    for cell in range_cells or ():
        overlay[cell] = ("│", inks["accent"])
    for cell in mark_cells:
        overlay[cell] = ("┆", inks["good"])


def draw_arrow(overlay: Overlay, arrow: Arrow, at: float, cells: int, color: str) -> None:
    """The arrow on the line at `at` (a row index, less than half more on its further lines, half less before it): down or up from the launching call,
    then along the lane to the event it started."""
    top, bottom = sorted((arrow.from_row, arrow.to_row))
    if not top <= at < bottom + 0.5:
        return
    if at != arrow.to_row:
        if top < at < bottom:
            overlay[arrow.from_cell] = ("│", color)
        return
    downwards = arrow.to_row > arrow.from_row
    if arrow.to_cell <= arrow.from_cell:
        overlay[arrow.from_cell] = ("▼" if downwards else "▲", color)
        return
    overlay[arrow.from_cell] = ("└" if downwards else "┌", color)
    for cell in range(max(arrow.from_cell + 1, 0), min(arrow.to_cell, cells)):
        overlay[cell] = ("─", color)
    overlay[max(arrow.to_cell - 1, arrow.from_cell)] = ("▶", color)
