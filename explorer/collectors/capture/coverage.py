"""How much of the op time of a capture has a line that is known exactly, roughly, or not at all."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from explorer.collectors.capture.phases import PHASE_NAMES


@dataclass(slots=True)
class Coverage:
    """Op time by phase and by how its line is known, summed over windows: {(phase, kind): self_ns}."""

    self_ns: dict[tuple[str, str], int] = field(default_factory=dict)

    def add(
        self, phases: npt.NDArray[np.int8], kinds: npt.NDArray[np.int8], self_ns: npt.NDArray[np.int64]
    ) -> None:
        """kinds: 0 none, 1 inferred or coarse, 2 exact."""
        key = phases.astype(np.int64) * 3 + kinds
        sums = np.bincount(key, weights=self_ns.astype(np.float64), minlength=3 * len(PHASE_NAMES))
        for at, total in enumerate(sums):
            if total:
                name = (PHASE_NAMES[at // 3], ("none", "inferred", "exact")[at % 3])
                self.self_ns[name] = self.self_ns.get(name, 0) + int(total)

    def by_phase(self) -> dict[str, dict[str, int]]:
        """Nanoseconds by phase and kind."""
        return {
            phase: {kind: self.self_ns.get((phase, kind), 0) for kind in ("exact", "inferred", "none")}
            for phase in sorted({phase for phase, _ in self.self_ns})
        }
