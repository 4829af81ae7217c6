"""Ranks from the variables of the usual launchers."""

from __future__ import annotations

import pytest

from explorer.collectors.capture.launcher import launched


@pytest.mark.parametrize(
    ("environment", "wanted"),
    [
        ({}, (None, None)),
        ({"RANK": "3", "WORLD_SIZE": "8", "LOCAL_RANK": "1"}, (3, 8)),
        ({"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "4"}, (2, 4)),
        ({"PMI_RANK": "1", "PMI_SIZE": "2"}, (1, 2)),
        ({"PMIX_RANK": "5"}, (5, None)),
        ({"SLURM_PROCID": "7", "SLURM_NTASKS": "16"}, (7, 16)),
        ({"JOB_COMPLETION_INDEX": "4"}, (4, None)),
        # torchrun inside a Slurm task: its own numbers count.
        ({"SLURM_PROCID": "1", "SLURM_NTASKS": "2", "RANK": "9", "WORLD_SIZE": "16"}, (9, 16)),
        ({"RANK": "", "SLURM_PROCID": "1"}, (1, None)),
        ({"RANK": "none"}, (None, None)),
    ],
)
def test_launchers(environment: dict[str, str], wanted: tuple[int | None, int | None]) -> None:
    assert launched(environment) == wanted
