"""Times as another tool read them from the trace file: float64 microseconds, without the run's clock base."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from explorer.analysis.run import Run

Floats = npt.NDArray[np.float64]


def clock_base_ns(run: Run, rank: int) -> int:
    """What the import added to the trace's own times; 0 where it added nothing."""
    attributes = run.reader.manifests[rank].attributes
    if attributes.get("clock") != "base":
        return 0
    return int(attributes.get("top_level", {}).get("baseTimeNanoseconds", 0))


def microseconds(nanoseconds: npt.NDArray[np.int64]) -> Floats:
    """The float64 nearest to the decimal number of microseconds, as a JSON reader makes it."""
    whole, rest = np.divmod(nanoseconds, 1000)
    return whole + rest / 1000.0
