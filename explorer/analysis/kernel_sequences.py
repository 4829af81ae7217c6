"""Sequences of kernels that come again and again on one stream: what fusing could save. The computed table
`kernel_sequences`.

Names are numbered; for every length the windows of a stream are hashed and counted. A sequence is kept when no longer one
comes (nearly) as often, and its occurrences are taken from the left without overlap. Collectives, copies and fills end a
sequence: they cannot be fused.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from explorer.model.schema import Column, Table

if TYPE_CHECKING:
    import pyarrow as pa

    from explorer.analysis.engine import Engine

SHORTEST, LONGEST = 2, 12
"""Kernels in a sequence."""
FEWEST = 3
"""Occurrences on a stream."""
KEPT = 40
"""Sequences per stream, by time between their kernels."""

KERNEL_SEQUENCES = Table(
    "kernel_sequences",
    "Sequences of kernels that come again and again on one stream, most time between their kernels first.",
    (
        Column("rank", "int32", "Process rank"),
        Column("device", "string", "Device as text"),
        Column("stream", "string", "Label of the stream"),
        Column("names", "string", "JSON list of the kernel names, in order"),
        Column("length", "int32", "Kernels in the sequence"),
        Column("occurrences", "int64", "How often it comes, without overlap"),
        Column("kernel_ns", "int64", "Time of its kernels, all occurrences", unit="ns"),
        Column(
            "between_ns",
            "int64",
            "Time between its kernels, all occurrences: what fusing saves at least",
            unit="ns",
        ),
        Column("median_kernel_ns", "int64", "Median duration of its kernels", unit="ns"),
        Column("first_event_id", "int64", "First kernel of the first occurrence"),
        Column("site_id", "int64", "Line responsible for that kernel", nullable=True),
    ),
)

Ints = npt.NDArray[np.int64]


def compute(engine: Engine) -> pa.Table:
    """The sequences of every stream."""
    import pyarrow as pa

    streams = engine.sql(
        "SELECT rank, track_id, device, stream, count(*) AS n FROM device_events WHERE category = 'kernel' GROUP BY ALL"
        " HAVING n >= 6 ORDER BY rank, track_id"
    )
    rows: list[dict[str, Any]] = []
    for place in streams.rows():
        events = engine.sql(
            "SELECT event_id, category = 'kernel' AS fusable, name, start_ns, end_ns, site_id FROM device_events"
            " WHERE rank = $rank AND track_id = $track ORDER BY start_ns, event_id",
            {"rank": place["rank"], "track": place["track_id"]},
        ).arrow()
        names = events.column("name").combine_chunks().dictionary_encode()
        codes = names.indices.to_numpy().astype(np.int64)
        fusable = events.column("fusable").to_numpy(zero_copy_only=False)
        # What cannot be fused gets a number of its own, so no window across it is ever seen twice.
        codes = np.where(fusable, codes, len(names.dictionary) + np.arange(len(codes)))
        start, end = (events.column(c).to_numpy() for c in ("start_ns", "end_ns"))
        for at, length in repeated(codes):
            inside = at[:, None] + np.arange(length)
            durations = (end - start)[inside]
            gaps = np.maximum(start[inside[:, 1:]] - end[inside[:, :-1]], 0)
            first = int(at[0])
            rows.append(
                {
                    "rank": place["rank"],
                    "device": place["device"],
                    "stream": place["stream"],
                    "names": json.dumps(
                        [names.dictionary[int(c)].as_py() for c in codes[first : first + length]]
                    ),
                    "length": length,
                    "occurrences": len(at),
                    "kernel_ns": int(durations.sum()),
                    "between_ns": int(gaps.sum()),
                    "median_kernel_ns": int(np.median(durations)),
                    "first_event_id": events.column("event_id")[first].as_py(),
                    "site_id": events.column("site_id")[first].as_py(),
                }
            )
    rows.sort(key=lambda row: (-row["between_ns"], -row["kernel_ns"], row["names"]))
    return pa.Table.from_pylist(rows, KERNEL_SEQUENCES.arrow_schema())


def repeated(codes: Ints) -> list[tuple[Ints, int]]:
    """Positions and length of the repeated sequences, those with most gaps inside first; no kernel is in two of them.

    A sequence that is itself a repetition (ABAB) is left to the shorter one, and one that nearly always is part of a longer
    one (90 % of the times) to that.
    """
    candidates: list[tuple[int, int, Ints]] = []
    taller: dict[int, int] = {}
    hashes = _windows(codes)
    for length in range(len(hashes) + 1, SHORTEST - 1, -1):
        window = hashes[length - 2]
        values, first, counts = np.unique(window, return_index=True, return_counts=True)
        often = np.flatnonzero(counts >= FEWEST)
        often = often[np.argsort(-counts[often], kind="stable")][: 4 * KEPT]
        longer, taller = taller, {}
        for place in often.tolist():
            value, at, count = int(values[place]), int(first[place]), int(counts[place])
            period = _period(codes[at : at + length])
            if 2 * period <= length:
                continue
            if count * 0.9 > longer.get(value, 0):
                # In a loop its occurrences overlap: only every so many of them stay. Fusing saves one gap less than kernels.
                gaps = count // -(-length // period) * (length - 1)
                candidates.append((gaps, length, np.flatnonzero(window == value)))
            if length > SHORTEST and period == length:
                for part in hashes[length - 3][at : at + 2].tolist():
                    taller[part] = max(taller.get(part, 0), count)
    candidates.sort(key=lambda item: (-item[0], -item[1], int(item[2][0])))
    found: list[tuple[Ints, int]] = []
    taken = np.zeros(len(codes), bool)
    for _, length, positions in candidates[: 8 * KEPT]:
        places = without_overlap(positions, length, taken)
        if len(places) < FEWEST:
            continue
        found.append((places, length))
        taken[(places[:, None] + np.arange(length)).ravel()] = True
        if len(found) == KEPT:
            break
    return found


def _windows(codes: Ints) -> list[Ints]:
    """Hashes of all windows of 2, 3 ... LONGEST numbers."""
    windows: list[Ints] = []
    rolling = unsigned = codes.astype(np.uint64)
    with np.errstate(over="ignore"):
        for length in range(2, min(LONGEST, len(codes)) + 1):
            rolling = rolling[:-1] * np.uint64(0x9E3779B97F4A7C15) + unsigned[length - 1 :]
            windows.append(rolling.view(np.int64))
    return windows


def _period(part: Ints) -> int:
    """By how much the sequence must be shifted to lie on itself again; its length if it never does."""
    shifts = (n for n in range(1, len(part)) if bool((part[n:] == part[:-n]).all()))
    return next(shifts, len(part))


def without_overlap(positions: Ints, length: int, taken: npt.NDArray[np.bool_]) -> Ints:
    """From the left, positions at least `length` apart whose places are not taken."""
    kept: list[int] = []
    free = -1
    for position in positions.tolist():
        if position >= free and not taken[position : position + length].any():
            kept.append(position)
            free = position + length
    return np.array(kept, np.int64)
