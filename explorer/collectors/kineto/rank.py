"""Which rank a trace belongs to: what it says itself, else what its file name says."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from explorer.collectors.source import Source

_DISTRIBUTED = re.compile(
    rb'"distributedInfo"\s*:\s*\{[^{}\[\]]*?"rank"\s*:\s*("(?:[^"\\]|\\.)*"|[^\s,{}\[\]]+)'
)
_NAME = re.compile(
    r"(?i)(?:^|[^a-z])(?:global_?rank|rank|worker|node_?rank)[-_.]?(\d+)|(?:^|[._-])r(\d+)(?=[._-])"
)


def as_rank(value: Any) -> int | None:
    """A rank as tools write it: an integer, one with a zero fraction, or a text of digits. None where it is no rank."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 10:
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    good = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 31
    return value if good else None


def rank_of(source: Source) -> tuple[int | None, str]:
    """(rank, 'distributedInfo' or 'file name'), or (None, '') where nothing says one that can be."""
    found = _DISTRIBUTED.search(source.head)
    if found and (rank := _said(found.group(1))) is not None:
        return rank, "distributedInfo"
    for part in (source.name, *reversed(source.path.split("/")[-3:-1])):
        for named in _NAME.finditer(part):
            rank = as_rank(named.group(1) or named.group(2))
            return rank, "file name" if rank is not None else ""
    return None, ""


def _said(text: bytes) -> int | None:
    try:
        return as_rank(msgspec.json.decode(text))
    except msgspec.DecodeError:
        return None
