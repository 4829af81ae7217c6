"""Kineto and Chrome trace JSON to a run."""

from __future__ import annotations

import pyarrow as pa

from explorer.collectors.kineto.collecting import codes, collect
from explorer.collectors.kineto.health import input_entry
from explorer.collectors.kineto.lines import find_lines
from explorer.collectors.kineto.linking import link_events
from explorer.collectors.kineto.rank import rank_of
from explorer.collectors.kineto.rows import read_rows
from explorer.collectors.kineto.splitter import Chunk, TraceText
from explorer.collectors.kineto.writing import write_run
from explorer.collectors.options import ImportOptions
from explorer.collectors.source import Source
from explorer.model.errors import InputError
from explorer.store.writer import RunWriter

NAME = "kineto"
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
    text = TraceText(source.blocks())
    tables: list[pa.Table] = []
    row = 0
    for chunk in text.chunks():
        table = read_rows(chunk, row)
        row += table.num_rows
        tables.append(table)
        if options.progress is not None:
            options.progress(text.bytes_read, None)
    if not tables and text.lost:
        raise InputError("no event in it can be read.", "The file may be cut off or no trace.")
    rows = (
        pa.concat_tables(tables).unify_dictionaries().combine_chunks()
        if tables
        else read_rows(Chunk(0, b""), 0)
    )
    found = collect(rows, text.top_level)
    links = link_events(found.events, found.halves)
    stack, stacks = codes(rows, "call_stack")
    lines = find_lines(found.events, links, stack[found.events.row], stacks)
    write_run(source, text, rows, found, links, lines, writer)
    writer.manifest.inputs.append(input_entry(source, None, writer.manifest.counts))
