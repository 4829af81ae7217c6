"""Ranks of the job that a run does not hold, by the number of ranks that those it holds have recorded."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from explorer.store.reader import RunReader

LARGEST_JOB = 2**31 - 1
"""A recorded number of ranks beyond it is none."""

MOST_NAMED = 8


def job_size(reader: RunReader) -> int:
    """How many ranks the job had; 0 where no rank recorded it."""
    sizes = (manifest.world_size or 0 for manifest in reader.manifests.values())
    return max((size for size in sizes if size <= LARGEST_JOB), default=0)


def absent_ranks(reader: RunReader) -> list[tuple[int, int]]:
    """The ranks of the job that have no manifest here, as (first, last) of each gap.

    Empty where only some ranks of the run were opened, where the size of the job is not known, or where a rank lies
    outside it, so that the size cannot be right.
    """
    size = job_size(reader)
    held = sorted({*reader.manifests, *reader.unreadable})
    if reader.of_some_ranks or not held or held[-1] >= size:
        return []
    edges = [-1, *held, size]
    return [(before + 1, after - 1) for before, after in pairwise(edges) if after - before > 1]


def ranks_text(gaps: Sequence[tuple[int, int]]) -> str:
    """Ranks as a sentence names them: 1, 4 to 7 and 9."""
    named = [str(first) if first == last else f"{first} to {last}" for first, last in gaps[:MOST_NAMED]]
    if len(gaps) > MOST_NAMED:
        return f"{', '.join(named)} and others"
    return f"{', '.join(named[:-1])} and {named[-1]}" if len(named) > 1 else "".join(named)


def absent_text(reader: RunReader) -> str:
    """Which ranks of the job are not in the run, as a sentence; empty where none is known to be missing."""
    gaps = absent_ranks(reader)
    if not gaps:
        return ""
    verb = "is" if gaps[0][0] == gaps[-1][1] else "are"
    return f"The job had {job_size(reader):,} ranks; {ranks_text(gaps)} {verb} not in this run"
