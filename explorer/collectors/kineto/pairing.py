"""Begin and end rows to whole events: nested per thread (B, E), or per id (b, e; S, F)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from explorer.collectors.kineto.compiled import compiled_sweep

Codes = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]


def pair(key: Codes, name: Codes, begins: Flags) -> Codes:
    """The partner of every row, given in time order: of a begin the place of its end, of an end that of its begin; -1 where
    there is none, so that the event was still open at the end, or the end fits nothing.

    Rows with one `key` nest. `name` numbers the names, -1 stands for none: an end with a name closes the innermost open event
    of that name and leaves what was opened inside it open; an end without a name closes the innermost one.
    """
    partner = np.full(len(key), -1, np.int32)
    compiled = compiled_sweep()
    if compiled is not None:
        compiled.pair(
            np.ascontiguousarray(key, np.int32),
            np.ascontiguousarray(name, np.int32),
            np.ascontiguousarray(begins),
            partner,
        )
        return partner
    open_: dict[int, list[tuple[int, int]]] = {}
    for place, (track, word, begin) in enumerate(zip(key.tolist(), name.tolist(), begins.tolist())):
        stack = open_.setdefault(track, [])
        if begin:
            stack.append((place, word))
            continue
        for depth in range(len(stack) - 1, -1, -1):
            if word < 0 or stack[depth][1] == word:
                other = stack.pop(depth)[0]
                partner[other], partner[place] = place, other
                break
    return partner
