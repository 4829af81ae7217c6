"""How a lane of the timeline becomes cells: two halves per cell, colour by what runs, shade by how busy it is."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING
from zlib import crc32

import numpy as np
import numpy.typing as npt
from rich.segment import Segment
from rich.style import Style
from textual.color import Color

from explorer.tui.text import brief, fit

if TYPE_CHECKING:
    from explorer.analysis.timeline import Lane, Timeline
    from explorer.tui.theme import Palette

LABEL_CELLS = 4
"""Events at least this wide carry their name."""
_LEVELS = (0.35, 0.55, 0.78, 1.0)
_TONES = (0.0, 0.14, 0.26)


class Colors:
    """Colours of events in one mode: by category, name, line or module."""

    def __init__(
        self, key: object, timeline: Timeline, mode: str, palette: Palette, inks: dict[str, str]
    ) -> None:
        self.key = key
        self.timeline = timeline
        self.codes = timeline.codes[mode]
        self.names = timeline.codes["name"]
        self.palette = palette
        self.background = Color.parse(inks["background"])
        self.foreground = inks["foreground"]
        self.ink = palette.ink
        self.match = inks["accent"]
        labels = timeline.labels[mode]
        if mode == "category":
            self.base = [palette.categories.get(label, palette.categories["other"]) for label in labels]
        else:
            unknown = {"no line known", "no module known"}
            self.base = [
                palette.categories["python"]
                if label in unknown
                else palette.series[crc32(label.encode(errors="replace")) % len(palette.series)]
                for label in labels
            ]
        self._shades: dict[tuple[str, int, int], str] = {}
        self._inks: dict[str, str] = {}

    def of(self, row: int, busy: float) -> str:
        """The colour of a row; paler the less of the cell is busy, a tone darker for every other name."""
        if self.palette.flat:
            return self.base[int(self.codes[row])]
        level = 3 if busy >= 0.75 else 2 if busy >= 0.4 else 1 if busy >= 0.12 else 0
        tone = int(self.names[row]) % len(_TONES)
        key = (self.base[int(self.codes[row])], level, tone)
        shade = self._shades.get(key)
        if shade is None:
            strength = _LEVELS[level] * (1 - _TONES[tone])
            shade = self._shades[key] = self.background.blend(Color.parse(key[0]), strength).hex6
        return shade

    def ink_on(self, shade: str | None) -> str:
        """The text colour that reads best on a shade."""
        if shade is None:
            return self.foreground
        found = self._inks.get(shade)
        if found is None:
            brightness = Color.parse(shade).brightness
            dark, light = sorted((self.ink, self.foreground), key=lambda each: Color.parse(each).brightness)
            found = self._inks[shade] = dark if brightness > 0.42 else light
        return found


@lru_cache(maxsize=65_536)
def _style(foreground: str | None, background: str | None, bold: bool = False) -> Style:
    return Style(color=foreground, bgcolor=background, bold=bold)


@dataclass
class LanePicture:
    """A lane as drawn: the row behind each half cell (-1: none), its colour, and where names stand."""

    rows: list[int]
    colors: list[str | None]
    labels: list[tuple[int, int, int, str]]
    """(first cell, cell after the last, row, name)"""

    def segments(
        self,
        colors: Colors,
        emphasised: set[int],
        matches: npt.NDArray[np.bool_] | None,
        overlay: dict[int, tuple[str, str]],
        chosen: tuple[int, int] | None,
        named: bool = True,
    ) -> list[Segment]:
        """The lane's cells. `emphasised` rows stand out, `matches` (by row) carry the search colour, `overlay` draws over
        everything, `chosen` cells have the ground of a range; without `named` no names are written."""
        cells = len(self.rows) // 2
        halves = self.colors
        if emphasised or matches is not None:
            halves = list(self.colors)
            for index, row in enumerate(self.rows):
                if row >= 0:
                    if row in emphasised:
                        halves[index] = colors.foreground
                    elif matches is not None and matches[row]:
                        halves[index] = colors.match
        text: list[str] = []
        styles: list[tuple[str | None, str | None, bool]] = []
        ground = colors.palette.idle
        for cell in range(cells):
            left, right = halves[2 * cell], halves[2 * cell + 1]
            if chosen and chosen[0] <= cell < chosen[1]:
                left, right = left or ground, right or ground
            if left == right:
                text.append(" ")
                styles.append((None, left, False))
            elif right is None:
                text.append("▌")
                styles.append((left, None, False))
            elif left is None:
                text.append("▐")
                styles.append((right, None, False))
            else:
                text.append("▌")
                styles.append((left, right, False))
        for first, last, row, name in self.labels if named else ():
            shown = fit(name, last - first)
            if len(shown) != last - first:
                continue  # wide characters: a name that does not map to cells one by one is left out
            bold = row in emphasised
            for offset, character in enumerate(shown):
                left, right = halves[2 * (first + offset)], halves[2 * (first + offset) + 1]
                text[first + offset] = character
                styles[first + offset] = (colors.ink_on(left or right), left or right, bold)
        for cell, (mark, color) in overlay.items():
            if 0 <= cell < cells:
                text[cell] = mark
                styles[cell] = (color, styles[cell][1], True)
        return _runs(text, styles, colors.background.hex6)


def _runs(text: list[str], styles: list[tuple[str | None, str | None, bool]], ground: str) -> list[Segment]:
    segments: list[Segment] = []
    start = 0
    for index in range(1, len(text) + 1):
        if index == len(text) or styles[index] != styles[start]:
            ink, fill, bold = styles[start]
            segments.append(Segment("".join(text[start:index]), _style(ink, fill or ground, bold)))
            start = index
    return segments


def paint_lane(
    timeline: Timeline, lane: Lane, start_ns: int, end_ns: int, cells: int, colors: Colors
) -> LanePicture:
    """Paint a lane's window."""
    window = lane.window(start_ns, end_ns, 2 * cells)
    rows = window.row.tolist()
    busy = window.busy.tolist()
    shades: list[str | None] = [colors.of(row, share) if row >= 0 else None for row, share in zip(rows, busy)]
    labels: list[tuple[int, int, int, str]] = []
    span = max(1, end_ns - start_ns)
    wide = span * LABEL_CELLS // cells
    candidates = np.unique(window.row[window.row >= 0])
    for row in candidates[timeline.row_duration_ns[candidates] >= wide].tolist():
        begin = int(timeline.row_start_ns[row]) - start_ns
        end = begin + int(timeline.row_duration_ns[row])
        first = max(0, -(-begin * cells // span))
        last = min(cells, end * cells // span)
        # A cell of room at the left keeps neighbours apart.
        if last - first >= LABEL_CELLS - 1:
            labels.append((first, last, row, (" " if first else "") + brief(timeline.name(row))))
    return LanePicture(rows, shades, labels)
