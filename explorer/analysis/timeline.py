"""The timeline of a rank: events laid out in lanes, and any window of them summarised to a number of cells at once.

Zooming and panning ask for a window many times a second, so the layout is held as sorted columns: a window costs a few
binary searches per lane and cell, whatever the number of events. Far out, the longest event of each block of events
stands for the block (the pre-aggregated level of detail); busy time is exact at every zoom, from prefix sums.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from explorer.analysis.timeline_lanes import lane_order

if TYPE_CHECKING:
    from explorer.analysis.run import Run

BLOCK = 32
"""Events per block of the far level of detail."""

MAX_EVENTS = 12_000_000
"""Events of one rank held at once (about 60 bytes each); of longer runs the longest events are kept, and that is said."""

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class TimelineTrack:
    """One track: its place in the timeline and its lanes, outermost first."""

    rank: int
    track_id: int
    label: str
    kind: str
    device: str
    events: int
    lanes: tuple[Lane, ...]


@dataclass(frozen=True)
class LaneWindow:
    """A lane in a window of `cells` equal parts.

    `row`: the row of the longest event in each cell, -1 where there is none. `busy`: share of the cell in which
    something ran, 0 to 1. `count`: events that start in the cell.
    """

    row: Ints
    busy: npt.NDArray[np.float64]
    count: Ints


@dataclass(frozen=True)
class Lane:
    """Events of one track and depth that do not overlap, as a slice of the timeline's columns."""

    first: int
    last: int
    depth: int
    start_ns: Ints = field(repr=False)
    duration_ns: Ints = field(repr=False)
    before_ns: Ints = field(repr=False)
    longest: Ints = field(repr=False)
    """Row, within the lane, of the longest event of each block"""

    def at(self, time_ns: int) -> int | None:
        """The row of the event that runs at this time (the last one starting at or before it, if it lasts so long)."""
        index = int(np.searchsorted(self.start_ns, time_ns, "right")) - 1
        if index < 0 or self.start_ns[index] + max(int(self.duration_ns[index]), 1) <= time_ns:
            return None
        return self.first + index

    def nearest(self, time_ns: int) -> int | None:
        """The row of the event whose interval is nearest to this time."""
        count = len(self.start_ns)
        if not count:
            return None
        index = int(np.searchsorted(self.start_ns, time_ns, "right")) - 1
        if index < 0:
            return self.first
        end = int(self.start_ns[index] + self.duration_ns[index])
        following = index + 1
        if following < count and end < time_ns and self.start_ns[following] - time_ns < time_ns - end:
            return self.first + following
        return self.first + index

    def window(self, start_ns: int, end_ns: int, cells: int) -> LaneWindow:
        """This lane between two times in `cells` equal parts."""
        edges = start_ns + (np.arange(cells + 1, dtype=np.int64) * max(end_ns - start_ns, 1)) // cells
        at = np.searchsorted(self.start_ns, edges, "right").astype(np.int64)
        # Busy time up to each edge: whole events before it and the part of the one that crosses it.
        previous = np.maximum(at - 1, 0)
        crossing = np.clip(edges - self.start_ns[previous], 0, self.duration_ns[previous])
        crossing[at == 0] = 0
        done = np.where(at > 0, self.before_ns[previous] + crossing, 0)
        width = np.maximum(np.diff(edges), 1)
        busy = np.diff(done) / width
        # `at` counts a start on the edge itself as before it; it belongs to the cell that the edge opens.
        opened = np.searchsorted(self.start_ns, edges, "left").astype(np.int64)
        first, last = opened[:-1], opened[1:]
        count = last - first
        row = np.full(cells, -1, np.int64)
        reach = np.zeros(cells, np.int64)
        some = count > 0
        if some.any():
            row[some] = self._longest(first[some], last[some])
            reach[some] = np.minimum(self.duration_ns[row[some]], edges[1:][some] - self.start_ns[row[some]])
        # The event that entered the cell from the left stands for it where it covers more of it.
        left = np.maximum(first - 1, 0)
        entered = np.clip(self.start_ns[left] + self.duration_ns[left] - edges[:-1], 0, width)
        entered[first == 0] = 0
        wins = (entered > 0) & (entered >= reach)
        row[wins] = left[wins]
        row[row >= 0] += self.first
        return LaneWindow(row, np.clip(busy, 0.0, 1.0), count)

    def _longest(self, first: Ints, last: Ints) -> Ints:
        """Row of the longest event of each range; ranges over several blocks are answered by their blocks."""
        total = int(last[-1] - first[0])
        if total <= BLOCK * 4 * len(first):
            base = int(first[0])
            key = (np.minimum(self.duration_ns[base : int(last[-1])], 1 << 38) << 24) | np.arange(
                total, dtype=np.int64
            )
            best = np.maximum.reduceat(key, first - base)
            return (best & ((1 << 24) - 1)) + base
        row = first.copy()
        block_first, block_last = -(-first // BLOCK), last // BLOCK
        whole = block_last > block_first
        if whole.any():
            length = np.minimum(self.duration_ns[self.longest], 1 << 38)
            key = (length << 24) | np.arange(len(self.longest), dtype=np.int64)
            # reduceat on pairs of bounds: every second value is the range wanted.
            bounds = np.empty(2 * int(whole.sum()), np.int64)
            bounds[0::2], bounds[1::2] = block_first[whole], np.minimum(block_last[whole], len(key) - 1)
            best = np.maximum.reduceat(key, bounds)[0::2]
            row[whole] = self.longest[best & ((1 << 24) - 1)]
        return row


@dataclass(frozen=True)
class Found:
    """Events found by name: `rows` in order of time, for every row whether it `is_match`, and the index in `rows` of
    the `first` to show."""

    rows: Ints
    is_match: npt.NDArray[np.bool_]
    first: int


@dataclass(frozen=True)
class Timeline:
    """One rank's events in lanes. Rows index the columns; `codes` number what rows can be coloured by."""

    rank: int
    start_ns: int
    end_ns: int
    tracks: tuple[TimelineTrack, ...]
    steps: tuple[dict[str, Any], ...]
    event_id: Ints = field(repr=False)
    row_start_ns: Ints = field(repr=False)
    row_duration_ns: Ints = field(repr=False)
    codes: dict[str, npt.NDArray[np.int32]] = field(repr=False)
    labels: dict[str, list[str]] = field(repr=False)
    left_out: int = 0

    def name(self, row: int) -> str:
        return self.labels["name"][int(self.codes["name"][row])]

    def category(self, row: int) -> str:
        return self.labels["category"][int(self.codes["category"][row])]

    def place(self, row: int) -> tuple[int, int] | None:
        """Track index and lane index of a row."""
        for index, track in enumerate(self.tracks):
            for depth, lane in enumerate(track.lanes):
                if lane.first <= row < lane.last:
                    return index, depth
        return None

    def row_of(self, event_id: int) -> int | None:
        """The row of an event."""
        found = np.flatnonzero(self.event_id == event_id)
        return int(found[0]) if len(found) else None

    def find(self, text: str, from_ns: int) -> Found:
        """Rows whose name holds the text (in any case), beginning with the first that starts at or after `from_ns`."""
        wanted = text.casefold()
        names = np.array([bool(wanted) and wanted in name.casefold() for name in self.labels["name"]], bool)
        is_match = names[self.codes["name"]]
        rows = np.flatnonzero(is_match)
        rows = rows[np.argsort(self.row_start_ns[rows], kind="stable")]
        first = int(np.searchsorted(self.row_start_ns[rows], from_ns)) if len(rows) else 0
        return Found(rows, is_match, first % max(len(rows), 1))

    def statistics(self, start_ns: int, end_ns: int, top: int = 12) -> dict[str, Any]:
        """What happens between two times: events, busy time per track, and the largest names by time inside the range.

        Returns `duration_ns`, `events`, `tracks` (label, busy_ns, share: outermost events, never counted twice) and
        `names` (name, category, count, total_ns: events clipped to the range, enclosed ones included).
        """
        span = max(end_ns - start_ns, 1)
        tracks, pieces = [], []
        for track in self.tracks:
            for lane in track.lanes:
                first = int(np.searchsorted(lane.start_ns + lane.duration_ns, start_ns, "right"))
                last = int(np.searchsorted(lane.start_ns, end_ns, "left"))
                if last > first:
                    pieces.append((lane.first + first, lane.first + last))
            outer = [lane.window(start_ns, end_ns, 1) for lane in track.lanes if lane.depth == 0]
            busy = round(min(sum(float(window.busy[0]) for window in outer), 1.0) * span)
            if any(lane.first <= a < lane.last for lane in track.lanes for a, _ in pieces):
                tracks.append({"label": track.label, "busy_ns": busy, "share": busy / span})
        rows = np.concatenate([np.arange(a, b) for a, b in pieces]) if pieces else np.empty(0, np.int64)
        begin = np.maximum(self.row_start_ns[rows], start_ns)
        finish = np.minimum(self.row_start_ns[rows] + self.row_duration_ns[rows], end_ns)
        inside = np.maximum(finish - begin, 0)
        code = self.codes["name"][rows]
        total = np.bincount(code, weights=inside, minlength=len(self.labels["name"]))
        count = np.bincount(code, minlength=len(self.labels["name"]))
        order = np.argsort(-total, kind="stable")[:top]
        names = []
        for index in order:
            if count[index]:
                row = int(rows[np.argmax(code == index)])
                names.append(
                    {
                        "name": self.labels["name"][index],
                        "category": self.category(row),
                        "count": int(count[index]),
                        "total_ns": int(total[index]),
                        "share": float(total[index]) / span,
                    }
                )
        return {"duration_ns": span, "events": len(rows), "tracks": tracks, "names": names}


def load_timeline(run: Run, rank: int = 0, max_events: int = MAX_EVENTS) -> Timeline:
    """Lay out one rank's events. Beyond `max_events` the longest are kept; `left_out` counts the others."""
    engine = run.engine
    total = int(engine.sql("SELECT count(*) AS n FROM events WHERE rank = ?", [rank]).rows()[0]["n"])
    shortest = -1
    if total > max_events:
        share = 1 - max_events / total
        rows = engine.sql(
            f"SELECT approx_quantile(duration_ns, {share:.6f}::FLOAT) AS d FROM events WHERE rank = ?", [rank]
        ).rows()
        shortest = int(rows[0]["d"])
    data = engine.sql(
        "SELECT event_id, coalesce(parent_id, -1) AS parent_id, track_id, name_code, category, start_ns, duration_ns,"
        " coalesce(site_id, 0) AS site_id, coalesce(module_id, 0) AS module_id"
        " FROM timeline_events WHERE rank = ? AND duration_ns > ?",
        [rank, shortest],
    ).arrow()
    names = engine.sql("SELECT name FROM timeline_names ORDER BY name_code").arrow()["name"].to_pylist()
    column = {name: data[name].to_numpy() for name in data.column_names if name != "category"}
    category = data["category"].combine_chunks().dictionary_encode()
    order, lanes = lane_order(
        column["track_id"], column["start_ns"], column["duration_ns"], column["event_id"], column["parent_id"]
    )
    start = column["start_ns"][order]
    duration = column["duration_ns"][order]
    sites, site_code = np.unique(column["site_id"][order], return_inverse=True)
    modules, module_code = np.unique(column["module_id"][order], return_inverse=True)
    steps = engine.sql(
        "SELECT step, start_ns, duration_ns, complete FROM steps WHERE rank = ? ORDER BY start_ns", [rank]
    ).rows()
    built: dict[int, list[Lane]] = {}
    for track_id, depth, first, last in lanes:
        built.setdefault(track_id, []).append(
            _lane(start[first:last], duration[first:last], first, last, depth)
        )
    tracks = _tracks(run, rank, built)
    low = int(start.min()) if len(start) else 0
    high = int((start + duration).max()) if len(start) else 1
    for step in steps:
        low = min(low, step["start_ns"])
        high = max(high, step["start_ns"] + step["duration_ns"])
    return Timeline(
        rank=rank,
        start_ns=low,
        end_ns=max(high, low + 1),
        tracks=tuple(tracks),
        steps=tuple(steps),
        event_id=column["event_id"][order],
        row_start_ns=start,
        row_duration_ns=duration,
        codes={
            "name": column["name_code"][order].astype(np.int32),
            "category": category.indices.to_numpy()[order].astype(np.int32),
            "line": site_code.astype(np.int32),
            "module": module_code.astype(np.int32),
        },
        labels={
            "name": names,
            "category": category.dictionary.to_pylist(),
            "line": _line_labels(run, sites),
            "module": _module_labels(run, modules),
        },
        left_out=total - len(start),
    )


def _lane(start: Ints, duration: Ints, first: int, last: int, depth: int) -> Lane:
    before = np.zeros(len(start), np.int64)
    np.cumsum(duration[:-1], out=before[1:])
    count = len(start)
    blocks = -(-count // BLOCK)
    padded = np.full(blocks * BLOCK, -1, np.int64)
    padded[:count] = duration
    longest = padded.reshape(blocks, BLOCK).argmax(axis=1) + np.arange(blocks, dtype=np.int64) * BLOCK
    return Lane(first, last, depth, start, duration, before, longest)


_KIND_ORDER = {"thread": 0, "stream": 1, "engine": 2, "queue": 3, "counter": 4}


def _tracks(run: Run, rank: int, lanes: dict[int, list[Lane]]) -> list[TimelineTrack]:
    """Threads first (the busiest on top), then streams, engines and queues in their own order."""
    rows = run.engine.sql("SELECT * FROM tracks WHERE rank = ? ORDER BY track_id", [rank]).rows()
    known = {row["track_id"]: row for row in rows}
    tracks = []
    for track_id, own in lanes.items():
        row = known.get(track_id, {})
        device = row.get("device_type") or "cpu"
        if row.get("device_index") is not None and device != "cpu":
            device = f"{device}:{row['device_index']}"
        tracks.append(
            TimelineTrack(
                rank=rank,
                track_id=track_id,
                label=row.get("label") or f"track {track_id}",
                kind=row.get("kind") or "thread",
                device=device,
                events=sum(lane.last - lane.first for lane in own),
                lanes=tuple(own),
            )
        )
    return sorted(
        tracks,
        key=lambda t: (
            _KIND_ORDER.get(t.kind, 9),
            t.device,
            -t.events if t.kind == "thread" else 0,
            t.track_id,
        ),
    )


def _line_labels(run: Run, sites: Ints) -> list[str]:
    rows = run.engine.sql("SELECT site_id, file, line FROM sites").rows()
    text = {row["site_id"]: f"{row['file']}:{row['line']}" for row in rows}
    return [text.get(int(site), "no line known") for site in sites]


def _module_labels(run: Run, modules: Ints) -> list[str]:
    rows = run.engine.sql("SELECT module_id, path, class_name FROM modules").rows()
    text = {row["module_id"]: row["path"] or row["class_name"] for row in rows}
    return [text.get(int(module), "no module known") for module in modules]
