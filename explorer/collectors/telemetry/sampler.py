"""What a sampler is: something that can be asked for values every so often, or that pushes them itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Reading:
    """One value. `label` names the track (of one device or core), `name` the counter; `device_index` None: the host."""

    timestamp_ns: int
    label: str
    name: str
    value: float
    unit: str
    device_type: str = "cpu"
    device_index: int | None = None


class Sampler(Protocol):
    """One source of readings. Nothing it does may raise into the program: errors end the sampler, and are said."""

    name: str

    def start(self) -> bool:
        """Open the source; False where this machine has none."""

    def sample(self, now_ns: int) -> Sequence[Reading]:
        """Values now; also what has arrived since the last call."""

    def stop(self) -> None:
        """Release everything."""
