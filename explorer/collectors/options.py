"""Settings of an import, the same for every format."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from explorer.collectors.source import Limits
from explorer.model.errors import UsageError

Progress = Callable[[int, int | None], None]
"""Called with the bytes of input done and the bytes in all, where known."""


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """`rank` overrides what the source says; `processes` and `memory_bytes` bound what an import uses; `add` puts new ranks
    into a run that is there."""

    rank: int | None = None
    limits: Limits = field(default_factory=Limits)
    processes: int | None = None
    memory_bytes: int = 1 << 30
    progress: Progress | None = None
    add: bool = False

    def __post_init__(self) -> None:
        """Raises UsageError where `rank` cannot be one."""
        if self.rank is not None and not 0 <= self.rank < 1 << 31:
            raise UsageError(f"{self.rank} is no rank.", f"Ranks go from 0 to {(1 << 31) - 1:,}.")


DEFAULTS = ImportOptions()
"""The settings an import has when nothing is said."""
