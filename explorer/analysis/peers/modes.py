"""Which answer is given in which definition."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

from explorer.analysis.result import Result
from explorer.model.errors import UsageError

if TYPE_CHECKING:
    from explorer.analysis.run import Run

ANSWERS = {
    ("breakdown", "hta"): "hta_breakdown.breakdown",
    ("kernels", "hta"): "hta_kernels.kernels",
    ("gaps", "hta"): "hta_idle.idle",
    ("launches", "hta"): "hta_launches.launches",
    ("queue", "hta"): "hta_launches.queue_lengths",
    ("breakdown", "tracelens"): "tracelens.breakdown",
    ("kernels", "tracelens"): "tracelens.kernels",
}
"""Function under explorer.analysis.peers for every answer that another tool defines."""


def in_mode(run: Run, what: str, mode: str) -> Result:
    """The answer `what` as `mode` defines it. Raises UsageError where that tool has no such answer."""
    found = ANSWERS.get((what, mode))
    if found is None:
        modes = ["native", *(m for w, m in ANSWERS if w == what)]
        raise UsageError(f"No mode of {what} is {mode!r}.", f"Choose one of: {', '.join(modes)}.")
    module, name = found.split(".")
    function: Callable[[Run], Result] = getattr(import_module(f"explorer.analysis.peers.{module}"), name)
    return function(run)
