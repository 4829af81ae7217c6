"""A trace into which a tool merged those of several ranks: taken apart again, one trace per rank."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from explorer.collectors.kineto.rank import as_rank
from explorer.collectors.kineto.splitter import TraceText
from explorer.collectors.source import Source

_RANK = re.compile(rb'"rank"\s*:\s*"?\d')
_MOST_RANKS = 4096
_HELD_BYTES = 32 << 20
"""Rows wait in memory up to this size, so that no more than one file is open at a time."""


class _Row(msgspec.Struct):
    pid: Any = None
    args: Any = None


_ROWS = msgspec.json.Decoder(list[msgspec.Raw])


@dataclass
class Split:
    """The ranks that the rows name, ascending. `paths` has a trace for each, none where there is one rank, or too many; `text`
    tells what was damaged or mended in the whole."""

    ranks: list[int]
    text: TraceText
    paths: dict[int, str] = field(default_factory=dict)


def holds_ranks(source: Source) -> bool:
    """Whether its events say their rank, and that their pids were renumbered, as merge tools leave it."""
    return b'"pid_raw"' in source.head and _RANK.search(source.head) is not None


def ranks_named(source: Source) -> list[int]:
    """The ranks that the rows of a trace name, ascending. Raises InputError where it is no trace."""
    return sorted({rank for _, _, rank in _rows(TraceText(source.blocks())) if rank is not None})


def split_ranks(source: Source, folder: str) -> Split:
    """Write the rows of each rank, as they are or mended, in their order, to a trace of its own in `folder`.

    A row belongs to the rank that its args name, else to that of the other rows with its pid, else to the lowest one.
    Raises InputError where it is no trace.
    """
    text = TraceText(source.blocks())
    owner: dict[Any, int] = {}
    ranks: set[int] = set()
    for _, pid, rank in _rows(text):
        if rank is not None:
            owner.setdefault(pid, rank)
            ranks.add(rank)
    if not 2 <= len(ranks) <= _MOST_RANKS:
        return Split(sorted(ranks), text)
    top_level = dict(text.top_level)
    world = top_level.get("distributedInfo")
    if isinstance(world, dict):
        top_level["distributedInfo"] = {k: v for k, v in world.items() if k != "rank"}
    head = msgspec.json.encode(top_level)[:-1] + (b"," if top_level else b"") + b'"traceEvents":['
    paths = {rank: os.path.join(folder, f"rank-{rank}.json") for rank in sorted(ranks)}
    waiting: dict[int, list[bytes]] = {rank: [head] for rank in paths}
    size, begun = 0, set[int]()
    for row, pid, rank in _rows(TraceText(source.blocks())):
        belongs = owner.get(pid, min(ranks)) if rank is None else rank
        piece = (b",\n" if belongs in begun else b"\n") + bytes(row)
        begun.add(belongs)
        waiting[belongs].append(piece)
        size += len(piece)
        if size > _HELD_BYTES:
            _append(waiting, paths)
            size = 0
    for pieces in waiting.values():
        pieces.append(b"\n]}\n")
    _append(waiting, paths)
    return Split(sorted(ranks), text, paths)


def _append(waiting: dict[int, list[bytes]], paths: dict[int, str]) -> None:
    """Put the waiting pieces behind what the files hold."""
    for rank, pieces in waiting.items():
        with open(paths[rank], "ab") as file:
            file.writelines(pieces)
        pieces.clear()


def _rows(text: TraceText) -> Iterator[tuple[msgspec.Raw, Any, int | None]]:
    """Every row with its pid and the rank that it names."""
    for chunk in text.chunks():
        for row in _ROWS.decode(b"[" + chunk.text + b"]"):
            try:
                found = msgspec.json.decode(row, type=_Row)
            except (msgspec.DecodeError, RecursionError):
                yield row, None, None
                continue
            rank = found.args.get("rank") if isinstance(found.args, dict) else None
            yield row, str(found.pid), as_rank(rank)
