"""The numbers of all events of a trace as arrays: what linking needs, without names and attributes as text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from explorer.collectors.kineto.light import Sparse

Ints = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]


@dataclass
class Events:
    """Parallel arrays, one entry per event; numbers that few events have are sparse, by position of the event.

    `nest` is the track for nesting: events of one track that lie on different async ids do not nest. `name`, `category`
    and `source_category` are positions in `names`, `categories` and `source_categories`.
    """

    row: Ints
    track: Codes
    nest: Codes
    name: Codes
    category: npt.NDArray[np.int8]
    source_category: Codes
    start: Ints
    duration: Ints
    on_device: Flags
    asynchronous: Flags
    correlation: Sparse
    external: Sparse
    sequence: Sparse
    forward_thread: Sparse
    names: list[str]
    categories: list[str]
    source_categories: list[str | None]

    def category_in(self, *wanted: str) -> Flags:
        """Which events have one of our categories."""
        table = np.array([category in wanted for category in self.categories], bool)
        return table[self.category] if len(table) else np.zeros(len(self.category), bool)

    def named(self, wanted: Callable[[str], bool]) -> Flags:
        """Which events have a name of that kind; each name is asked once."""
        table = np.array([wanted(name) for name in self.names], bool)
        return table[self.name] if len(table) else np.zeros(len(self.name), bool)

    def forget(self) -> None:
        """Drop all numbers; the words stay."""
        nothing = np.empty(0, np.int32)
        self.track = self.nest = self.name = self.source_category = nothing
        self.row = self.start = self.duration = np.empty(0, np.int64)
        self.category = np.empty(0, np.int8)
        self.on_device = self.asynchronous = np.empty(0, bool)
        empty = Sparse(np.empty(0, np.int64), np.empty(0, np.int64))
        self.correlation = self.external = self.sequence = self.forward_thread = empty
