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


def roll_up_ranks(
    directory: str, *, processes: int | None = None, scheduler: str | None = None
) -> list[tuple[int, str]]:
    """Make the roll-ups of every finished rank that has none, and gather those of all ranks.

    Args:
        directory: the run, local or any URL that fsspec opens (with a scheduler: reachable from its workers).
        processes: worker processes; None: as many as cores.
        scheduler: address of a Dask scheduler; its workers do the work then.

    Returns:
        (rank, reason) of the ranks whose roll-ups could not be made; whatever the reason, the run stays as it was.
    """
    reader = RunReader(directory)
    there = rolled_up(reader)
    ranks = [rank for rank in reader.ranks if reader.manifests[rank].finished and rank not in there]
    count = min(processes or os.cpu_count() or 1, len(ranks))
    if scheduler is not None:
        failed = _on_cluster(scheduler, directory, ranks)
    elif count < 2 or len(ranks) < _FEWEST_FOR_PROCESSES:
        failed = _here(directory, ranks)
    else:
        failed = _in_processes(directory, ranks, count)
    gather(reader)
    return failed


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
