"""A linked trace to one rank of a run: its rows in stretches, its dimensions, its devices, its counts and its health."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from explorer.collectors.kineto.collecting import REASONS, Collected
from explorer.collectors.kineto.columns import Column, opened
from explorer.collectors.kineto.devices import device_rows
from explorer.collectors.kineto.group import Group, Written, chosen
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
GROUP_CHUNKS = 12
"""Chunks that do at most: where rows are long, fewer of them."""
PART_EDGES = 1_000_000
"""Edges that share one part."""
GROUP_TABLES = ("events", "collectives", "memory_events", "counters", "source_rows")

Run = Callable[[Iterator[tuple[Any, ...]]], Iterator[Written]]
"""Runs `write_group` for each tuple of arguments, here or in other processes; results in order."""


@dataclass
class Linked:
    """What writing takes from linking: the columns of all events and tracks of all rows, wherever they lie, and the words and
    ids that some of them are positions in."""

    columns: dict[str, Column]
    track: Column
    words: dict[str, list[str | None]]
    ids: dict[str, Ints]
    events: int


def keep_linked(
    light: LightRows, spool: Spool | None, found: Collected, links: Links, lines: Lines
) -> Linked:
    """The columns of all events, moved to where the chunks are unless `spool` is None. What was given need not be held any
    longer."""
    events = found.events
    columns = {
        "row": events.row,
        "start": events.start,
        "duration": events.duration,
        "on_device": events.on_device,
        "category": events.category,
        "own": links.own,
        "step": links.step,
        "parent": links.parent,
        "launch": links.launch,
        "op": links.op,
        "forward": links.forward,
        "phase": links.phase,
        "site": lines.site,
        "stack": lines.stack,
        "module": lines.module,
        "attribution": lines.method,
        "precision": lines.precision,
    }
    kept = (
        {**columns, "track": light.track} if spool is None else spool.keep({**columns, "track": light.track})
    )
    return Linked(
        columns={name: kept[name] for name in columns},
        track=kept["track"],
        words={
            "category": list(events.categories),
            "phase": list(PHASES),
            "attribution": METHODS,
            "precision": PRECISIONS,
        },
        ids={"site": lines.site_ids, "stack": lines.stack_ids, "module": lines.module_ids},
        events=len(events.row),
    )


def write_rows(
    linked: Linked, spool: Spool, found: Collected, memory: dict[str, Ints], writer: RunWriter, run: Run
) -> Counter[str]:
    """Write the tables that hold source rows. The counter says how many source rows went where."""
    counts: Counter[str] = Counter()
    root: Any = writer.location.root if writer.location.is_local else writer.location
    tasks = (
        (group, root, writer.rank, {table: writer.allocate(table) for table in GROUP_TABLES})
        for group in _groups(linked, spool, found, memory)
    )
    refused = 0
    for written in run(tasks):
        for part in written.parts:
            writer.add(part)
        for text, reason in written.refused:
            writer.quarantine(text, reason)
        refused += len(written.refused)
        counts["counters"] += written.counters
    counts["events"] = linked.events
    counts["merged_ends"] = found.merged_ends
    counts["memory_events"] = len(found.memory_rows)
    counts["counter_rows"] = len(found.counter_rows)
    counts["source_rows"] = len(found.other_rows)
    counts["quarantine"] = refused
    accounted = sum(
        counts[k]
        for k in ("events", "merged_ends", "memory_events", "counter_rows", "source_rows", "quarantine")
    )
    counts["source_total"] = total = sum(spool.counts)
    if accounted != total:
        raise AssertionError(f"{accounted} of {total} source rows are accounted for")
    return counts


def _groups(linked: Linked, spool: Spool, found: Collected, memory: dict[str, Ints]) -> Iterator[Group]:
    event_row = opened(linked.columns["row"])
    refused = found.refused
    first_row = 0
    chunk = 0
    while chunk < len(spool.counts):
        last = chunk
        rows = 0
        while last < min(len(spool.counts), chunk + GROUP_CHUNKS) and (
            rows == 0 or rows + spool.counts[last] <= GROUP_ROWS
        ):
            rows += spool.counts[last]
            last += 1
        after = first_row + rows
        low, high = np.searchsorted(event_row, (first_row, after)).tolist()

        def between(numbers: Ints, first: int = first_row, end: int = after) -> Ints:
            a, b = np.searchsorted(numbers, (first, end))
            return numbers[a:b] - first

        a, b = np.searchsorted(memory["row"], (first_row, after)).tolist()
        e, f = np.searchsorted(found.unfinished, (low, high)).tolist()
        extra = {place - low: '"unfinished":true' for place in found.unfinished[e:f].tolist()}
        ends: dict[int, int] = {}
        g, h = np.searchsorted(found.closed, (low, high)).tolist()
        for place, row in zip(found.closed[g:h].tolist(), found.end_row[g:h].tolist()):
            if first_row <= row < after:
                ends[place - low] = row - first_row
            else:
                extra[place - low] = f'"end_row":{row}'
        c, d = np.searchsorted(refused.row, (first_row, after)).tolist()
        why = [REASONS[code] for code in refused.why[c:d].tolist()]
        yield Group(
            chunks=spool.chunks[chunk:last],
            first=first_row,
            count=rows,
            base_ns=found.clock.base_ns,
            track=linked.track,
            low=low,
            high=high,
            columns=linked.columns,
            words=linked.words,
            ids=linked.ids,
            extra=extra,
            memory={
                name: (values[a:b] - first_row if name == "row" else values[a:b])
                for name, values in memory.items()
            },
            counters=between(found.counter_rows),
            others=between(found.other_rows),
            refused=list(zip((refused.row[c:d] - first_row).tolist(), why)),
            ends=ends,
        )
        for number in range(chunk, last):
            spool.chunks[number] = ""
        chunk, first_row = last, after


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
        source, target = row[sources], row[targets]
        if len(source) > PART_EDGES:
            order = np.argsort(source, kind="stable")
            source, target = source[order], target[order]
        for low in range(0, len(source), PART_EDGES):
            from_, to = source[low : low + PART_EDGES], target[low : low + PART_EDGES]
            writer.write(
                "edges",
                {
                    "source_id": from_,
                    "target_rank": np.full(len(from_), writer.rank, np.int32),
                    "target_id": to,
                    "kind": chosen(np.zeros(len(from_), np.int32), [kind]),
                },
            )
