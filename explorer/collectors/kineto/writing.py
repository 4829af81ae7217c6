"""A linked trace to one rank of a run: its rows in stretches, its dimensions, its devices, its counts and its health."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from explorer.collectors.kineto.collecting import Collected
from explorer.collectors.kineto.devices import device_rows
from explorer.collectors.kineto.group import Group, Written, write_group
from explorer.collectors.kineto.light import LightRows
from explorer.collectors.kineto.lines import METHODS, PRECISIONS, Lines
from explorer.collectors.kineto.linking import Links
from explorer.collectors.kineto.phases import PHASES
from explorer.collectors.kineto.splitter import TraceText
from explorer.collectors.kineto.spool import Spool
from explorer.store.writer import RunWriter

Ints = npt.NDArray[np.int64]
GROUP_ROWS = 150_000
"""Rows of the source that share one part of each table."""
GROUP_TABLES = ("events", "collectives", "memory_events", "counters", "source_rows")

Run = Callable[[Iterator[tuple[Any, ...]]], Iterator[Written]]
"""Runs `write_group` for each tuple of arguments, here or in other processes; results in order."""


def write_rows(
    light: LightRows,
    spool: Spool,
    found: Collected,
    links: Links,
    lines: Lines,
    memory: dict[str, Ints],
    writer: RunWriter,
    run: Run,
) -> Counter[str]:
    """Write the tables that hold source rows. The counter says how many source rows went where."""
    counts: Counter[str] = Counter()
    root: Any = writer.location.root if writer.location.is_local else writer.location
    tasks = (
        (group, root, writer.rank, {table: writer.allocate(table) for table in GROUP_TABLES})
        for group in _groups(light, spool, found, links, lines, memory)
    )
    refused = 0
    for written in run(tasks):
        for part in written.parts:
            writer.add(part)
        for text, reason in written.refused:
            writer.quarantine(text, reason)
        refused += len(written.refused)
        counts["counters"] += written.counters
    counts["events"] = len(found.events.row)
    counts["merged_ends"] = found.merged_ends
    counts["memory_events"] = len(found.memory_rows)
    counts["counter_rows"] = len(found.counter_rows)
    counts["source_rows"] = len(found.other_rows)
    counts["quarantine"] = refused
    accounted = sum(
        counts[k]
        for k in ("events", "merged_ends", "memory_events", "counter_rows", "source_rows", "quarantine")
    )
    counts["source_total"] = len(light)
    if accounted != len(light):
        raise AssertionError(f"{accounted} of {len(light)} source rows are accounted for")
    return counts


def _groups(
    light: LightRows,
    spool: Spool,
    found: Collected,
    links: Links,
    lines: Lines,
    memory: dict[str, Ints],
) -> Iterator[Group]:
    events = found.events
    refused_rows = np.array([row for row, _ in found.refused], np.int64)
    unfinished = set(found.unfinished.tolist())
    first_row = 0
    chunk = 0
    while chunk < len(spool.counts):
        last = chunk
        rows = 0
        while last < len(spool.counts) and (rows == 0 or rows + spool.counts[last] <= GROUP_ROWS):
            rows += spool.counts[last]
            last += 1
        after = first_row + rows
        low, high = np.searchsorted(events.row, (first_row, after)).tolist()
        part = slice(low, high)

        def between(numbers: Ints, first: int = first_row, end: int = after) -> Ints:
            a, b = np.searchsorted(numbers, (first, end))
            return numbers[a:b] - first

        a, b = np.searchsorted(memory["row"], (first_row, after)).tolist()
        extra = {place - low: '"unfinished":true' for place in unfinished if low <= place < high}
        ends: dict[int, int] = {}
        for place, row in found.end_of.items():
            if low <= place < high:
                if first_row <= row < after:
                    ends[place - low] = row - first_row
                else:
                    extra[place - low] = f'"end_row":{row}'
        c, d = np.searchsorted(refused_rows, (first_row, after)).tolist()
        yield Group(
            chunks=spool.chunks[chunk:last],
            first=first_row,
            base_ns=found.clock.base_ns,
            track=light.track[first_row:after],
            event_rows=events.row[part] - first_row,
            columns={
                "start": events.start[part],
                "duration": events.duration[part],
                "own": links.own[part],
                "step": links.step[part],
                "parent_id": _ids(links.parent[part], events.row),
                "launch_id": _ids(links.launch[part], events.row),
                "op_id": _ids(links.op[part], events.row),
                "forward_id": _ids(links.forward[part], events.row),
                "site_id": lines.site_ids[lines.site[part]],
                "stack_id": lines.stack_ids[lines.stack[part]],
                "module_id": lines.module_ids[lines.module[part]],
            },
            words={
                "category": (events.category[part], list(events.categories)),
                "phase": (links.phase[part], list(PHASES)),
                "attribution": (lines.method[part], METHODS),
                "precision": (lines.precision[part], PRECISIONS),
            },
            on_device=events.on_device[part],
            extra=extra,
            memory={
                name: (values[a:b] - first_row if name == "row" else values[a:b])
                for name, values in memory.items()
            },
            counters=between(found.counter_rows),
            others=between(found.other_rows),
            refused=[(row - first_row, reason) for row, reason in found.refused[c:d]],
            ends=ends,
        )
        for number in range(chunk, last):
            spool.chunks[number] = ""
        chunk, first_row = last, after


def _ids(positions: npt.NDArray[Any], row: Ints) -> Ints:
    """Positions of events as event ids; -1 where there is none."""
    return np.where(positions >= 0, row[np.maximum(positions, 0)], -1)


def write_dimensions(
    text: TraceText, found: Collected, links: Links, lines: Lines, writer: RunWriter
) -> None:
    """Write everything that is not one row per source row."""
    row = found.events.row
    writer.write("tracks", found.tracks)
    for table, data in (
        ("steps", links.steps),
        ("sites", lines.sites),
        ("stacks", lines.stacks),
        ("modules", lines.modules),
        ("devices", device_rows(text.top_level, found)),
    ):
        if data:
            writer.write(table, data)
    for kind, (sources, targets) in links.edges.items():
        if len(sources):
            writer.write(
                "edges",
                {
                    "source_id": row[sources],
                    "target_rank": np.full(len(sources), writer.rank, np.int32),
                    "target_id": row[targets],
                    "kind": [kind] * len(sources),
                },
            )


def write_here(tasks: Iterator[tuple[Any, ...]]) -> Iterator[Written]:
    """Write group after group in this process."""
    for task in tasks:
        yield write_group(*task)
