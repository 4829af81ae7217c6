"""What is said about a file into which a tool merged several ranks: its damage, and rows that are not of the rank they name."""

from __future__ import annotations

from explorer.collectors.kineto.health import tell_damage
from explorer.collectors.kineto.splitter import TraceText
from explorer.store.writer import RunWriter


def tell_merged(named: list[int], whole: TraceText | None, writer: RunWriter) -> None:
    """`named` are the ranks that the rows of a file name that was not taken apart, `whole` is the text of one that was, with
    the first of its parts."""
    if whole is not None:
        tell_damage(whole, writer)
    if len(named) > 1:
        writer.health(
            "several_ranks",
            "error",
            len(named),
            f"Rows of {len(named)} ranks ({named[0]}, {named[1]}{' ...' if named[2:] else ''}) are counted as rank "
            f"{writer.rank} together.",
            "Import the file alone and on this machine, or one trace per rank.",
            "ranks, breakdown, steps",
        )
        writer.manifest.losses.append({"offset": 0, "size_bytes": None, "reason": "several_ranks"})
    elif named and named[0] != writer.rank:
        writer.health(
            "rank_differs",
            "warning",
            1,
            f"The rows say that they are of rank {named[0]}, but they are counted as rank {writer.rank}.",
            "Name the rank with --rank.",
            "ranks",
        )
