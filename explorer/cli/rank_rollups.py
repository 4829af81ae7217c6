"""Roll-ups after an import or a recording of several ranks: what can go wrong is said, and never fails the verb."""

from __future__ import annotations


def roll_up_quietly(
    directory: str,
    *,
    processes: int | None = None,
    scheduler: str | None = None,
    memory_bytes: int | None = None,
) -> None:
    """Make the roll-ups of a run of several ranks. They are made on demand anyway: a failure here costs time only."""
    from explorer.cli.output import note

    try:
        from explorer.store.reader import RunReader

        if len(RunReader(directory).ranks) < 2:
            return
        from explorer.analysis.rank_rollups import roll_up_ranks

        failed = roll_up_ranks(directory, processes=processes, scheduler=scheduler, memory_bytes=memory_bytes)
    except Exception as error:
        note(f"No roll-ups were made ({error}); `ranks` will make them.")
        return
    if failed:
        rank, reason = failed[0]
        note(f"No roll-up of {len(failed)} ranks was made, the first: rank {rank} ({reason}).")
