"""Roll-ups of many ranks at once: in worker processes of this machine, or as tasks of a Dask cluster, one a rank.

A rank whose roll-ups are there is left alone, so that work may be repeated, and a task that ran twice changes nothing.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context

from explorer.analysis.gathered_rollups import gather
from explorer.analysis.rollup import roll_up, rolled_up
from explorer.store.arrow_alone import keep_pandas_out
from explorer.store.reader import RunReader

_FEWEST_FOR_PROCESSES = 4
"""Below this many ranks, starting processes takes longer than they save."""

_OWN_BYTES = 208 << 20
_PROCESS_BYTES = 176 << 20
_EVENT_BYTES = 700
"""Memory of this process and of one that makes roll-ups, and what these take for each event of their rank, as measured."""


def roll_up_ranks(
    directory: str,
    *,
    processes: int | None = None,
    scheduler: str | None = None,
    memory_bytes: int | None = None,
) -> list[tuple[int, str]]:
    """Make the roll-ups of every finished rank that has none, and gather those of all ranks.

    Args:
        directory: the run, local or any URL that fsspec opens (with a scheduler: reachable from its workers).
        processes: worker processes; None: as many as cores.
        scheduler: address of a Dask scheduler; its workers do the work then.
        memory_bytes: what the processes of this machine may take together: so many of them are started, and ranks that
            need more alone are left out. None: no bound.

    Returns:
        (rank, reason) of the ranks whose roll-ups could not be made; whatever the reason, the run stays as it was.
    """
    reader = RunReader(directory)
    there = rolled_up(reader)
    ranks = [rank for rank in reader.ranks if reader.manifests[rank].finished and rank not in there]
    count = min(processes or os.cpu_count() or 1, len(ranks))
    left_out: list[tuple[int, str]] = []
    if memory_bytes is not None and scheduler is None:
        ranks, left_out, affordable = _within(reader, ranks, memory_bytes)
        count = min(count, affordable, len(ranks))
    if scheduler is not None:
        failed = _on_cluster(scheduler, directory, ranks)
    elif count < 2 or len(ranks) < _FEWEST_FOR_PROCESSES:
        failed = _here(directory, ranks)
    else:
        failed = _in_processes(directory, ranks, count)
    gather(reader)
    return sorted(left_out + failed)


def _within(
    reader: RunReader, ranks: Sequence[int], memory_bytes: int
) -> tuple[list[int], list[tuple[int, str]], int]:
    """The ranks for which the memory is enough, the others with the reason, and how many at once it is enough for."""
    events = {
        rank: sum(part.rows for part in reader.manifests[rank].parts if part.table == "events")
        for rank in ranks
    }
    needed = {rank: _PROCESS_BYTES + _EVENT_BYTES * events[rank] for rank in ranks}
    room = memory_bytes - _OWN_BYTES
    fit = [rank for rank in ranks if needed[rank] <= room]
    reason = "it needs about {:,} MiB, more than is allowed; `ranks` makes it when it is asked for"
    others = [
        (rank, reason.format((_OWN_BYTES + needed[rank]) >> 20)) for rank in ranks if needed[rank] > room
    ]
    return fit, others, max(1, room // max((needed[rank] for rank in fit), default=1))


def one_rank(directory: str, rank: int) -> int:
    """Make one rank's roll-ups; returns the rank. For a process of its own: it does without pandas."""
    keep_pandas_out()
    roll_up(RunReader(directory, ranks=[rank]), [rank])
    return rank


def _on_cluster(scheduler: str, directory: str, ranks: Sequence[int]) -> list[tuple[int, str]]:
    from explorer.store.cluster import each

    outcome = each(scheduler, one_rank, [(directory, rank) for rank in ranks])
    return [(rank, error) for rank, (_, error) in zip(ranks, outcome) if error is not None]


def _here(directory: str, ranks: Sequence[int]) -> list[tuple[int, str]]:
    failed = []
    for rank in ranks:
        try:
            roll_up(RunReader(directory, ranks=[rank]), [rank])
        except Exception as error:
            failed.append((rank, f"{type(error).__name__}: {error}"))
    return failed


def _in_processes(directory: str, ranks: Sequence[int], count: int) -> list[tuple[int, str]]:
    failed = []
    # Spawned, not forked: this process may hold threads of DuckDB, Arrow or torch.
    with ProcessPoolExecutor(count, mp_context=get_context("spawn")) as pool:
        started = {pool.submit(one_rank, directory, rank): rank for rank in ranks}
        for future in as_completed(started):
            if error := future.exception():
                failed.append((started[future], f"{type(error).__name__}: {error}"))
    return sorted(failed)
