"""What to say where an import went beside the run that was named, because a run was there already."""

from __future__ import annotations

from collections.abc import Sequence


def add_hint(wanted: str, written: str, ranks: Sequence[int]) -> str:
    """A line that says why the run is not where it was wanted, and when `--add` would have put it there; else empty.

    Args:
        wanted: the run directory or URL that was asked for.
        written: the one the run was written to.
        ranks: the ranks imported.
    """
    from explorer.model.errors import ExplorerError
    from explorer.store.location import Location
    from explorer.store.reader import RunReader

    if Location.of(wanted).root == Location.of(written).root:
        return ""
    try:
        there = RunReader(wanted)
    except ExplorerError:
        return f"{wanted} is taken."
    if held := sorted({*there.ranks, *there.unreadable} & set(ranks)):
        return f"{wanted} holds rank {held[0]} already."
    what = f"rank {ranks[0]}" if len(ranks) == 1 else "these ranks"
    return f"{wanted} holds a run without {what}; --add puts {'it' if len(ranks) == 1 else 'them'} there."
