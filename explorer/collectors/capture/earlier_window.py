"""What a window needs to know of the one before: a step may have been cut in two, and a backward pass from its forward pass."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from explorer.collectors.capture.coded_names import CodedNames
from explorer.collectors.capture.forward_backward import ACCUMULATE, EVALUATE

I64 = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


class ForwardOp(NamedTuple):
    """A numbered op of the forward pass."""

    event_id: int
    site: int
    module: int
    is_coarse: bool
    is_guess: bool


@dataclass(slots=True)
class EarlierWindow:
    """Kept from window to window of one run."""

    phases: dict[int, int] = field(default_factory=dict)
    """By track: the phase that was last."""
    ops: dict[int, ForwardOp] = field(default_factory=dict)
    """By autograd's number, of the step that is still open: the last op with it. Flow pairs are of one session of the
    profiler, numbers are of the process."""

    def forward_ops(
        self,
        names: CodedNames,
        tracks: I64,
        parents: I64,
        depths: list[npt.NDArray[np.intp]],
        sequences: I64,
        in_backward: Bools,
        forward: I64,
    ) -> dict[int, ForwardOp]:
        """The forward op of each backward row that has none in its own window, where the window before has it."""
        if not self.ops:
            return {}
        found: dict[int, ForwardOp] = {}
        wanted = in_backward & (forward < 0)
        for row in np.flatnonzero(wanted & (sequences >= 0)).tolist():
            op = self.ops.get(int(sequences[row]))
            if op is not None:
                found[row] = op
                if parents[row] >= 0 and wanted[parents[row]]:
                    found.setdefault(int(parents[row]), op)
        track, previous = -1, None
        for row in np.flatnonzero(names.where(lambda name: name.startswith(EVALUATE))).tolist():
            if tracks[row] != track:
                track, previous = int(tracks[row]), None
            if not names[row].endswith(ACCUMULATE):
                previous = found.get(row)
            elif previous is not None and wanted[row]:
                found[row] = previous
        for rows in depths[1:]:
            for row in rows[wanted[rows]].tolist():
                if row not in found and int(parents[row]) in found:
                    found[row] = found[int(parents[row])]
        return found

    def keep(
        self, rows: npt.NDArray[np.intp], sequences: I64, ops: list[npt.NDArray[Any]], *, mid_step: bool
    ) -> None:
        """Keep the numbered forward ops of a window, sorted by time, where it ends in the middle of a step; else forget all.

        `ops`: event id, site, module, coarse and guess of each of `rows`."""
        if not mid_step:
            self.ops = {}
            return
        columns = [values.tolist() for values in ops]
        for number, event, site, module, coarse, guess in zip(sequences[rows].tolist(), *columns):
            self.ops[number] = ForwardOp(event, site, module, bool(coarse), bool(guess))
