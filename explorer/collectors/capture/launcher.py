"""Which rank of how many this process is, from the variables that launchers set."""

from __future__ import annotations

import os
from collections.abc import Mapping

LAUNCHERS = (
    ("RANK", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMIX_RANK", ""),
    ("PMI_RANK", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
    ("JOB_COMPLETION_INDEX", ""),
)
"""Variables of the rank and of the number of ranks, "" where there is none: torchrun and Kubeflow, Open MPI, PMIx, other
MPIs, Slurm, indexed Kubernetes jobs (one process per pod). What a launcher closer to the process sets comes first."""


def launched(environment: Mapping[str, str] = os.environ) -> tuple[int | None, int | None]:
    """(rank, number of ranks); None where no launcher says it."""
    for rank, size in LAUNCHERS:
        if environment.get(rank, "").isdigit():
            count = environment.get(size, "")
            return int(environment[rank]), int(count) if count.isdigit() else None
    size = environment.get("WORLD_SIZE", "")
    return None, int(size) if size.isdigit() else None
