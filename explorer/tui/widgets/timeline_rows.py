"""Which lanes the timeline lists, and on which lines of the picture each of them stands."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from explorer.analysis.timeline import Lane, Timeline, TimelineTrack

MANY_LANES = 60
"""Beyond so many lanes, only the busiest thread and the devices are open at first."""
BETWEEN_TRACKS = (-1, 0)
"""The place of a line between two tracks."""


@dataclass(frozen=True)
class Row:
    """A row of the picture: a lane of a track; `first` carries the track's label."""

    track: TimelineTrack
    lane: Lane
    first: bool


def folded_at_first(timeline: Timeline) -> set[int]:
    """Ids of the tracks that begin collapsed."""
    if sum(len(track.lanes) for track in timeline.tracks) <= MANY_LANES:
        return set()
    threads = [track for track in timeline.tracks if track.kind == "thread"]
    return {track.track_id for track in threads[1:]}


def rows_of(timeline: Timeline, collapsed: Collection[int], words: str) -> list[Row]:
    """The lanes of every track whose name holds all the words; of a collapsed track the outermost lane."""
    wanted = words.casefold().split()
    rows: list[Row] = []
    for track in timeline.tracks:
        text = f"{track.label} {track.device} {track.kind}".casefold()
        if all(word in text for word in wanted):
            lanes = track.lanes[:1] if track.track_id in collapsed else track.lanes
            rows += [Row(track, lane, index == 0) for index, lane in enumerate(lanes)]
    return rows


def places_of(rows: Sequence[Row], height: int) -> list[tuple[int, int]]:
    """For every line of the picture the index of its row, and which line of the row it is.

    Few lanes stand up to three lines high and apart by track; many stand close.
    """
    tracks = sum(row.first for row in rows)
    tall = next((tall for tall in (3, 2) if tall * len(rows) + tracks - 1 <= height), 1)
    apart = tall * len(rows) + tracks - 1 <= height
    places: list[tuple[int, int]] = []
    for index, row in enumerate(rows):
        if row.first and index and apart:
            places.append(BETWEEN_TRACKS)
        places += [(index, line) for line in range(tall)]
    return places


def row_index(rows: Sequence[Row], event: int) -> int | None:
    """The row in which an event (by its number in the timeline) stands; None where its lane is not listed."""
    return next((i for i, row in enumerate(rows) if row.lane.first <= event < row.lane.last), None)
