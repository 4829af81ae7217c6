"""The line of an optimizer's own range where line recording rested when it began.

torch opens the range before it tells that the optimizer steps; from then on the line is known (`PinnedLines`).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from explorer.collectors.capture.coded_names import CodedNames
from explorer.collectors.lines.replay import Chains

PREFIX = "Optimizer.step#"

LOOK_AT = 8
"""Rows inside the range: garbage may be collected before the optimizer's first op."""


def take_line_of_first_op(
    names: CodedNames, parents: npt.NDArray[np.int64], node: npt.NDArray[np.int64], chains: Chains
) -> None:
    """Give a range that began in a function whose line was not known the `node` of the first op in it that has a line of
    the same function. Rows are in order of track, beginning and end."""
    for row in np.flatnonzero(names.where(lambda name: name.startswith(PREFIX))).tolist():
        own = int(node[row])
        if not (chains.coarse[own] or chains.guess[own]):
            continue
        for inside in range(row + 1, min(row + 1 + LOOK_AT, len(node))):
            if parents[inside] < row:
                break
            inner = int(node[inside])
            if chains.codes[own] is chains.codes[inner] and not chains.coarse[inner]:
                node[row] = inner
                break
