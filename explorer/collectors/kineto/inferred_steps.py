"""Steps of a training loop that marks none: each ends where its optimizer has stepped, which PyTorch marks by itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from explorer.collectors.kineto.events import Events

Ints = npt.NDArray[np.int64]
_OPTIMIZER = "Optimizer.step#"
_BACKWARD = "autograd::engine::evaluate_function"


def optimizer_steps(events: Events) -> tuple[Ints, Ints, list[dict[str, Any]]]:
    """Start and end of each step in ns, and the rows of `steps`; empty where no optimizer steps.

    A step reaches from the end of one optimizer's step to the end of the next; several optimizers that step with no
    backward pass between them end one step. What comes before the first end and behind the last is cut by the edges of
    the recording (`complete` is False).
    """
    none = np.empty(0, np.int64)
    called = events.named(lambda name: name.startswith(_OPTIMIZER)) & ~events.on_device
    marks = np.flatnonzero(called)
    if not len(marks):
        return none, none, []
    # The thread that steps most often; others (an optimizer of a side thread) do not cut its steps.
    tracks, often = np.unique(events.track[marks], return_counts=True)
    track = tracks[np.argmax(often)]
    marks = marks[events.track[marks] == track]
    marks = marks[np.argsort(events.start[marks], kind="stable")]
    starts = events.start[marks]
    ends = starts + events.duration[marks]
    # An optimizer that wraps another steps around it.
    reached = np.maximum.accumulate(ends)
    outer = np.append(True, ends[1:] > reached[:-1])
    starts, ends = starts[outer], ends[outer]
    evaluated = events.named(lambda name: name.startswith(_BACKWARD)) & ~events.on_device
    backward = np.sort(events.start[evaluated])
    if len(backward):
        before = np.searchsorted(backward, starts)
        last = np.append(before[1:] > before[:-1], True)
        ends = ends[last]
    here = np.flatnonzero(events.track == track)
    first, final = int(events.start[here].min()), int((events.start[here] + events.duration[here]).max())
    edges = [first, *ends.tolist()]
    complete = [False] + [True] * (len(ends) - 1)
    if final > edges[-1]:
        edges.append(final)
        complete.append(False)
    rows = [
        {
            "step": number,
            "start_ns": begin,
            "duration_ns": end - begin,
            "complete": whole,
            "phase": None,
            "window": None,
            "pause_ns": None,
        }
        for number, (begin, end, whole) in enumerate(zip(edges, edges[1:], complete))
    ]
    return np.array(edges[:-1], np.int64), np.array(edges[1:], np.int64), rows
