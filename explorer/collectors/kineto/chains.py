"""Call chains: events with the same labels from the root down get the same chain number."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from explorer.collectors.kineto.distinct import distinct
from explorer.collectors.kineto.nesting import nearest

Ints = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]


@dataclass
class Chains:
    """`chain` numbers each event (-1 outside any chain); chain c extends `up[c]` (-1 at the root) by `label[c]`."""

    chain: Codes
    up: list[int] = field(default_factory=list)
    label: list[int] = field(default_factory=list)

    def labels(self, chain: int) -> list[int]:
        """Labels of one chain, innermost first."""
        found = []
        while chain >= 0:
            found.append(self.label[chain])
            chain = self.up[chain]
        return found


def build_chains(parent: Codes, selected: npt.NDArray[np.bool_], label: Codes) -> Chains:
    """Chains of the `selected` events among each other's enclosers; other events get the chain they lie in.

    One round per nesting depth, all events of the depth at once.
    """
    nodes = np.flatnonzero(selected)
    result = Chains(np.full(len(parent), -1, np.int32))
    if not len(nodes):
        return result
    above = nearest(parent, selected, itself=False)[nodes]
    number = np.full(len(parent) + 1, -1, np.int32)  # The last entry stands for 'no encloser'.
    pending = np.arange(len(nodes))
    ready = above < 0
    span = int(label[nodes].max()) + 1
    while len(pending):
        now = pending[ready]
        if not len(now):
            break
        key = (number[above[now]].astype(np.int64) + 1) * span + label[nodes[now]]
        found, inverse = distinct(key)
        first = len(result.up)
        number[nodes[now]] = first + inverse
        result.up += ((found // span) - 1).tolist()
        result.label += (found % span).tolist()
        pending = pending[~ready]
        ready = number[above[pending]] >= 0
    owner = nearest(parent, selected, itself=True)
    known = owner >= 0
    result.chain[known] = number[owner[known]]
    return result
