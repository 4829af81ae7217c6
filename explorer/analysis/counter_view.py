"""Counters over time for a screen: one series per rank, track and name, on the time axis of the steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from explorer.analysis.run import Run

BUCKETS = 600


@dataclass(frozen=True)
class CounterSeries:
    """One counter. `values` holds the mean of the samples in each of BUCKETS equal parts of the recording, the value
    before it where a part has none, None before the first sample."""

    rank: int
    track: str
    name: str
    unit: str
    samples: int
    smallest: float
    mean: float
    largest: float
    last: float
    values: list[float | None]


@dataclass(frozen=True)
class CounterPicture:
    """All counters of a rank between `start_ns` and `end_ns`, of a recording from `low_ns` to `high_ns`, and the starts of
    steps as (step, share of the time axis)."""

    start_ns: int
    end_ns: int
    low_ns: int
    high_ns: int
    series: list[CounterSeries]
    steps: list[tuple[int, float]]


def counter_picture(run: Run, rank: int, window: tuple[int, int] | None = None) -> CounterPicture:
    """Counters of a rank between two times (None: over its whole recording, steps and samples together). The figures of
    a series are those of the whole recording."""
    engine = run.engine
    span = engine.sql(
        """
        SELECT min(a) AS a, max(b) AS b FROM (
            SELECT min(start_ns) AS a, max(start_ns + duration_ns) AS b FROM steps WHERE rank = ?
            UNION ALL SELECT min(timestamp_ns), max(timestamp_ns) FROM counters WHERE rank = ?)
        """,
        [rank, rank],
    ).rows()[0]
    if span["a"] is None:
        return CounterPicture(0, 1, 0, 1, [], [])
    low, high = span["a"], max(span["b"], span["a"] + 1)
    start, end = window or (low, high)
    heads = engine.sql(
        "SELECT c.track_id, t.label AS track, c.name, any_value(c.unit) AS unit, count(c.value) AS samples,"
        " min(c.value) AS smallest, avg(c.value) AS mean, max(c.value) AS largest,"
        " arg_max(c.value, c.timestamp_ns) AS last"
        " FROM counters AS c LEFT JOIN tracks AS t ON t.rank = c.rank AND t.track_id = c.track_id"
        " WHERE c.rank = ? AND c.value IS NOT NULL GROUP BY c.track_id, t.label, c.name ORDER BY c.track_id, c.name",
        [rank],
    ).rows()
    rows = engine.sql(
        "SELECT track_id, name, least((timestamp_ns - ?) * ? // (? - ?), ? - 1)::INT AS bucket, avg(value) AS value"
        " FROM counters WHERE rank = ? AND value IS NOT NULL AND timestamp_ns BETWEEN ? AND ?"
        " GROUP BY track_id, name, bucket"
        " UNION ALL SELECT track_id, name, -1, arg_max(value, timestamp_ns)"
        " FROM counters WHERE rank = ? AND value IS NOT NULL AND timestamp_ns < ? GROUP BY track_id, name",
        [start, BUCKETS, end, start, BUCKETS, rank, start, end, rank, start],
    ).rows()
    values: dict[tuple[int, str], dict[int, float]] = {}
    for row in rows:
        values.setdefault((row["track_id"], row["name"]), {})[row["bucket"]] = row["value"]
    series = [
        CounterSeries(
            rank=rank,
            track=head["track"] or f"track {head['track_id']}",
            name=head["name"],
            unit=head["unit"] or "",
            samples=head["samples"],
            smallest=head["smallest"],
            mean=head["mean"],
            largest=head["largest"],
            last=head["last"],
            values=_held(values.get((head["track_id"], head["name"]), {})),
        )
        for head in heads
    ]
    steps = engine.sql("SELECT step, start_ns FROM steps WHERE rank = ? ORDER BY start_ns", [rank]).rows()
    shown = [(row["step"], (row["start_ns"] - start) / (end - start)) for row in steps]
    return CounterPicture(start, end, low, high, series, [step for step in shown if 0 <= step[1] < 1])


def _held(known: dict[int, float]) -> list[float | None]:
    series: list[float | None] = []
    current = known.get(-1)
    for bucket in range(BUCKETS):
        current = known.get(bucket, current)
        series.append(current)
    return series
