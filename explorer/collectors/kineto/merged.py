"""A trace into which a tool merged those of several ranks: taken apart again, one trace per rank."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, BinaryIO

import msgspec

from explorer.collectors.kineto.splitter import TraceText
from explorer.collectors.source import Source

_RANK = re.compile(rb'"rank"\s*:\s*\d')
_MOST_RANKS = 4096


class _Row(msgspec.Struct):
    pid: Any = None
    args: Any = None


_ROWS = msgspec.json.Decoder(list[msgspec.Raw])


def holds_ranks(source: Source) -> bool:
    """Whether its events say their rank, and that their pids were renumbered, as merge tools leave it."""
    return b'"pid_raw"' in source.head and _RANK.search(source.head) is not None


def split_ranks(source: Source, folder: str) -> dict[int, str]:
    """Write the rows of each rank, as they are and in their order, to a trace of its own in `folder`; the paths by rank.

    A row belongs to the rank that its args name, else to that of the other rows with its pid, else to the lowest one. Empty
    where the file holds fewer than two ranks, or is damaged: then it is better read as it is.
    """
    text = TraceText(source.blocks())
    owner: dict[Any, int] = {}
    for _, pid, rank in _rows(text):
        if rank is not None:
            owner.setdefault(pid, rank)
    ranks = set(owner.values())
    if not 2 <= len(ranks) <= _MOST_RANKS or text.lost or text.repairs or text.damage or not text.closed:
        return {}
    world = text.top_level.get("distributedInfo")
    if isinstance(world, dict):
        text.top_level["distributedInfo"] = {k: v for k, v in world.items() if k != "rank"}
    head = msgspec.json.encode(text.top_level)[:-1] + (b"," if text.top_level else b"") + b'"traceEvents":['
    paths = {rank: os.path.join(folder, f"rank-{rank}.json") for rank in sorted(ranks)}
    with ExitStack() as stack:
        files: dict[int, BinaryIO] = {r: stack.enter_context(open(p, "wb")) for r, p in paths.items()}
        for file in files.values():
            file.write(head)
        begun: set[int] = set()
        for row, pid, rank in _rows(TraceText(source.blocks())):
            belongs = owner.get(pid, min(ranks)) if rank is None else rank
            files[belongs].write((b",\n" if belongs in begun else b"\n") + bytes(row))
            begun.add(belongs)
        for file in files.values():
            file.write(b"\n]}\n")
    return paths


def _rows(text: TraceText) -> Iterator[tuple[msgspec.Raw, Any, int | None]]:
    """Every row with its pid and the rank that it names."""
    for chunk in text.chunks():
        for row in _ROWS.decode(b"[" + chunk.text + b"]"):
            try:
                found = msgspec.json.decode(row, type=_Row)
            except msgspec.DecodeError:
                yield row, None, None
                continue
            rank = found.args.get("rank") if isinstance(found.args, dict) else None
            good = isinstance(rank, int) and not isinstance(rank, bool) and 0 <= rank < 1 << 31
            yield row, str(found.pid), rank if good else None
