"""Kineto and Chrome trace JSON to a run."""

from __future__ import annotations

import os

import numpy as np

from explorer.collectors.kineto.collecting import collect
from explorer.collectors.kineto.events import Events
from explorer.collectors.kineto.health import tell_events, tell_source
from explorer.collectors.kineto.light import Sparse
from explorer.collectors.kineto.lines import find_lines
from explorer.collectors.kineto.linking import Links, link_events
from explorer.collectors.kineto.memory import link_memory
from explorer.collectors.kineto.rank import rank_of
from explorer.collectors.kineto.reading import Reader, chunk_bytes
from explorer.collectors.kineto.resident import Resident
from explorer.collectors.kineto.splitter import TraceText
from explorer.collectors.kineto.spool import Spool
from explorer.collectors.kineto.writing import keep_linked, write_dimensions, write_rows
from explorer.collectors.options import ImportOptions
from explorer.collectors.release_memory import release_memory
from explorer.collectors.source import Source
from explorer.model.errors import InputError
from explorer.store.writer import RunWriter

NAME = "kineto"
_MOST_THREADS = 4
"""Tracks that are nested at once: each takes some 40 bytes per event meanwhile."""
_KEYS = (b'"traceEvents"', b'"deviceProperties"', b'"schemaVersion"', b'"distributedInfo"')


def recognises(source: Source) -> bool:
    """JSON text that begins as a trace does: an object with traceEvents or Kineto's own keys, or an array of events."""
    head = source.head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if head.startswith(b"{"):
        return any(key in head for key in _KEYS)
    return head.startswith(b"[") and (b'"ph"' in head or not head[1:].strip(b" \t\r\n]"))


def find_rank(source: Source) -> tuple[int | None, str]:
    """The rank a source says it is, and how that is known."""
    return rank_of(source)


def import_source(source: Source, writer: RunWriter, options: ImportOptions) -> None:
    """Read one trace into the writer's rank. Raises InputError when it is no trace or holds nothing readable."""
    reopen = source.blocks_from if source.container == "plain" else None
    text = TraceText(source.blocks(), chunk_bytes(options), reopen)
    spool = Spool()
    threads = min(options.processes or os.cpu_count() or 1, _MOST_THREADS)
    try:
        with (
            Reader(source, options) as reader,
            Resident(reader.own_bytes, reader.held_bytes) as resident,
        ):
            light = reader.read(text, spool, resident)
            release_memory()
            if not len(light) and text.lost:
                raise InputError("no event in it can be read.", "The file may be cut off or no trace.")
            found = collect(light, text.top_level)
            light.forget()
            if not resident.active:
                found.events.row = spool.mapped("row", found.events.row)
                light.track = spool.mapped("track", light.track)
            release_memory()
            links = link_events(found.events, found.halves, threads)
            if not resident.active:
                _map_columns(spool, found.events, links)
            release_memory()
            lines = find_lines(
                found.events,
                links,
                light.call_stack.within(found.events.row),
                light.call_stacks,
                text.top_level.get("stackFrames"),
            )
            tell_events(found, links, lines, writer)
            memory = link_memory(light, found, links, lines)
            write_dimensions(text, found, links, lines, writer)
            in_files = not resident.active or reader.in_processes
            linked = keep_linked(light, spool if in_files else None, found, links, lines)
            # Writing takes what it needs from where the columns are kept now.
            del links, lines, light
            found.events.forget()
            release_memory()
            counts = write_rows(linked, spool, found, memory, writer, reader.write)
    finally:
        spool.close()
    writer.manifest.counts = dict(counts)
    tell_source(text, found, writer)
    writer.manifest.inputs.append(
        {
            "path": source.path,
            "member": source.member,
            "size_bytes": source.size_bytes,
            "container": source.container,
            "rows": counts["source_total"],
        }
    )


def _map_columns(spool: Spool, events: Events, links: Links) -> None:
    """Leave to the scratch folder what finding lines hardly needs."""
    for column in ("start", "duration"):
        setattr(events, column, spool.mapped(column, getattr(events, column)))
    for column in ("own", "step", "phase", "order"):
        setattr(links, column, spool.mapped(column, getattr(links, column)))
    events.external = events.sequence = events.forward_thread = Sparse(
        np.empty(0, np.int64), np.empty(0, np.int64)
    )
