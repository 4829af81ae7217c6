"""Which rank a trace belongs to: what it says itself, else what its file name says."""

from __future__ import annotations

import re

from explorer.collectors.source import Source

_DISTRIBUTED = re.compile(rb'"distributedInfo"\s*:\s*\{[^{}\[\]]*?"rank"\s*:\s*(\d+)')
_NAME = re.compile(
    r"(?i)(?:^|[^a-z])(?:global_?rank|rank|worker|node_?rank)[-_.]?(\d+)|(?:^|[._-])r(\d+)(?=[._-])"
)


def rank_of(source: Source) -> tuple[int | None, str]:
    """(rank, 'distributedInfo' or 'file name'), or (None, '') where nothing says it."""
    found = _DISTRIBUTED.search(source.head)
    if found:
        return int(found.group(1)), "distributedInfo"
    named = None
    for part in (source.name, *reversed(source.path.split("/")[-3:-1])):
        for named in _NAME.finditer(part):
            return int(named.group(1) or named.group(2)), "file name"
    return None, ""
