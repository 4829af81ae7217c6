"""From records to states: which call chain each thread was executing, from when on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from types import CodeType
from typing import TYPE_CHECKING

from explorer.collectors.lines.records import CLEAR, COARSE, LIKELY, LOST, SAME_MODULE, ThreadRecords

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_MODULE = "<module>"

_COARSE_AT = -(1 << 40)

ROOT = 0
"""The node of an empty chain: no recorded frame is running."""


@dataclass(slots=True)
class Chains:
    """Every call chain seen, as a tree: node -> (parent node, code object, line, coarse, guess). Node 0 is the empty chain."""

    parents: list[int] = field(default_factory=lambda: [ROOT])
    codes: list[CodeType | None] = field(default_factory=lambda: [None])
    lines: list[int] = field(default_factory=lambda: [0])
    coarse: list[bool] = field(default_factory=lambda: [False])
    guess: list[bool] = field(default_factory=lambda: [False])
    _children: dict[tuple[int, int], dict[int, int]] = field(default_factory=dict)

    def below(self, parent: int, code: CodeType) -> dict[int, int]:
        """Nodes of `code` called from `parent`, by line; 0 is the coarse one, a guessed line stands as -line, a coarse
        one at a line as _COARSE_AT - line."""
        key = (parent, id(code))
        found = self._children.get(key)
        if found is None:
            found = self._children[key] = {}
        return found

    def add(
        self,
        lines: dict[int, int],
        parent: int,
        code: CodeType,
        line: int,
        *,
        guess: bool = False,
        coarse: bool = False,
    ) -> int:
        """A new node: `coarse` one of which only the function is known (`line` 0: it stands at the first line), `guess` one whose
        line is likely but not known. Keeps `code` alive."""
        node = len(self.parents)
        self.parents.append(parent)
        self.codes.append(code)
        self.lines.append(line or code.co_firstlineno)
        self.coarse.append(coarse or line == 0)
        self.guess.append(guess)
        lines[-line if guess else _COARSE_AT - line if coarse and line else line] = node
        return node

    def chain(self, node: int) -> list[tuple[CodeType, int, bool]]:
        """Frames of a node, innermost first: (code, line, coarse)."""
        frames = []
        while node:
            code = self.codes[node]
            assert code is not None
            frames.append((code, self.lines[node], self.coarse[node]))
            node = self.parents[node]
        return frames


@dataclass(slots=True)
class ThreadStates:
    """States of one thread: from `times[i]` on, the chain is node `nodes[i]`. Times ascend."""

    native_id: int
    name: str
    times: npt.NDArray[np.int64]
    nodes: npt.NDArray[np.int64]
    finished: bool
    module_times: npt.NDArray[np.int64]
    module_keys: npt.NDArray[np.int64]
    """From module_times[i] on, the innermost nn.Module is module_keys[i]; 0 is none."""

    module_depths: npt.NDArray[np.int64]
    """From module_times[i] on, so many calls of nn.Modules are open."""

    skipped_times: npt.NDArray[np.int64] | None = None
    """Times of every SKIPPED_CHUNKth call that was traced but not recorded; None: nothing was."""


class Replay:
    """Replays records of successive windows; every thread's open frames carry over from one window to the next."""

    def __init__(self) -> None:
        self.chains = Chains()
        self._open: dict[int, list[_Frame]] = {}
        self._open_modules: dict[int, list[int]] = {}

    def states(self, threads: Iterable[ThreadRecords]) -> list[ThreadStates]:
        """States of each thread that recorded anything."""
        return [self._thread(thread) for thread in threads if thread.records or thread.modules]

    def _thread(self, thread: ThreadRecords) -> ThreadStates:
        import numpy as np

        nodes = self.nodes(thread)
        innermost, open_calls = self._modules(thread)
        if thread.finished:
            self._open.pop(thread.native_id, None)
            self._open_modules.pop(thread.native_id, None)
        return ThreadStates(
            thread.native_id,
            thread.name,
            np.array(thread.records[0::2], dtype=np.int64),
            np.array(nodes, dtype=np.int64),
            thread.finished,
            np.array(thread.modules[0::2], dtype=np.int64),
            np.array(innermost, dtype=np.int64),
            np.array(open_calls, dtype=np.int64),
            np.array(thread.skipped, dtype=np.int64),
        )

    def nodes(self, thread: ThreadRecords) -> list[int]:
        """The node of the thread after each of its records."""
        chains = self.chains
        add = chains.add
        stack = self._open.setdefault(thread.native_id, [])
        top = stack[-1] if stack else None
        node = top.node if top is not None else ROOT
        nodes: list[int] = []
        keep = nodes.append
        for payload in thread.records[1::2]:
            if payload is None:
                if stack:
                    stack.pop()
                    top = stack[-1] if stack else None
                    node = top.node if top is not None else ROOT
            elif payload.__class__ is int:
                if payload == CLEAR:
                    stack.clear()
                    top, node = None, ROOT
                elif payload <= LIKELY:
                    if top is not None:
                        line = LIKELY - payload
                        found = top.lines.get(-line)
                        node = (
                            found
                            if found is not None
                            else add(top.lines, top.parent, top.code, line, guess=True)
                        )
                        top.node = node
                elif payload <= LOST:
                    del stack[LOST - payload :]
                    top = stack[-1] if stack else None
                    node = ROOT
                    if top is not None:
                        top.node = node = self._coarse(top)
                elif top is not None:
                    if payload > 0:
                        found = top.lines.get(payload)
                        node = found if found is not None else add(top.lines, top.parent, top.code, payload)
                    else:
                        node = self._coarse(top)
                    top.node = node
            else:
                lines = chains.below(node, payload)
                top = _Frame(payload, node, lines)
                first = payload.co_firstlineno
                found = lines.get(first)
                node = found if found is not None else add(lines, top.parent, payload, first)
                top.node = node
                stack.append(top)
            keep(node)
        return nodes

    def _coarse(self, frame: _Frame) -> int:
        """The node of a frame whose lines are not recorded any more: its function. The first line of a file says nothing of
        its module level, so there it is the last line known: near it the code was hot."""
        line = self.chains.lines[frame.node] if frame.code.co_name == _MODULE else 0
        found = frame.lines.get(_COARSE_AT - line if line else COARSE)
        if found is not None:
            return found
        return self.chains.add(frame.lines, frame.parent, frame.code, line, coarse=True)

    def _modules(self, thread: ThreadRecords) -> tuple[list[int], list[int]]:
        """After each record: the innermost module, and how many calls are open."""
        stack = self._open_modules.setdefault(thread.native_id, [])
        innermost, open_calls = [], []
        for key in thread.modules[1::2]:
            if key > 0:
                stack.append(key)
            elif key == SAME_MODULE:
                stack.append(stack[-1] if stack else 0)
            elif key == CLEAR:
                stack.clear()
            elif stack:
                stack.pop()
            innermost.append(stack[-1] if stack else 0)
            open_calls.append(len(stack))
        return innermost, open_calls


class _Frame:
    """An open frame: its code, the node it was called from, its nodes by line, and the node it is at."""

    __slots__ = ("code", "lines", "node", "parent")

    def __init__(self, code: CodeType, parent: int, lines: dict[int, int]) -> None:
        self.code = code
        self.parent = parent
        self.lines = lines
        self.node = parent
