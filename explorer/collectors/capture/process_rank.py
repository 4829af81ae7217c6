"""Which rank of how many this process is."""

from __future__ import annotations

import sys
from typing import Any

from explorer.collectors.capture.launcher import launched


def environment_rank() -> int:
    """Rank from torch.distributed where it runs, else from the launcher's environment."""
    distributed = _running_distributed()
    return int(distributed.get_rank()) if distributed is not None else launched()[0] or 0


def world_size() -> int | None:
    """Number of ranks, from the same places; None where nothing says it."""
    distributed = _running_distributed()
    return int(distributed.get_world_size()) if distributed is not None else launched()[1]


def _running_distributed() -> Any:
    torch = sys.modules.get("torch")
    try:
        if torch is not None and torch.distributed.is_available() and torch.distributed.is_initialized():
            return torch.distributed
    except Exception:
        # A torch that is still being imported.
        pass
    return None
