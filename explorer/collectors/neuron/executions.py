"""Which execution of a compiled graph a device time lies in, and so which host call launched it and in which step."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Execution:
    """One execution on the device, in host time, with what the system profile knows about it.

    Attributes:
        op_ids: framework ops fused into it (one with compiled graphs; several under adaptive eager execution).
    """

    start_ns: int
    end_ns: int
    launch_id: int | None = None
    op_ids: tuple[int, ...] = ()
    step: int | None = None
    sites: tuple[tuple[int, float], ...] = ()
    stack_id: int | None = None
    phase: str | None = None


@dataclass
class Executions:
    """Executions of one core in time order."""

    items: list[Execution] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.items.sort(key=lambda item: item.start_ns)
        self._starts = np.array([item.start_ns for item in self.items], np.int64)
        self._ends = np.array([item.end_ns for item in self.items], np.int64)

    def place(self, start: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Index of the execution that each start time lies in; -1 where in none."""
        if not self.items:
            return np.full(len(start), -1, np.int64)
        place = np.searchsorted(self._starts, start, side="right") - 1
        return np.where((place >= 0) & (start <= self._ends[np.maximum(place, 0)]), place, -1)

    def columns(self, place: np.ndarray[Any, Any]) -> dict[str, Any]:
        """launch_id, op_id, step and phase for rows with these execution indexes; {} where no execution knows any."""
        if not any(item.launch_id is not None or item.op_ids or item.step is not None for item in self.items):
            return {}
        index = pa.array(place, pa.int64(), mask=place < 0)
        values = {
            "launch_id": pa.array([item.launch_id for item in self.items], pa.int64()),
            "op_id": pa.array([item.op_ids[0] if item.op_ids else None for item in self.items], pa.int64()),
            "step": pa.array([item.step for item in self.items], pa.int32()),
            "phase": pa.array([item.phase for item in self.items], pa.string()),
        }
        return {name: column.take(index) for name, column in values.items()}
