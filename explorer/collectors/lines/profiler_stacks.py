"""Lines where another tracer holds sys.settrace: from the Python and C calls that torch.profiler records with `with_stack`.

A call says on which line of the calling frame it was made: exact for everything that happens inside it. Operators
(`a @ b`, `x[i]`) are no calls; their line is taken to be that of the call before them in the same frame, and marked as a
guess. Modules and other Python threads are not seen this way.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any, cast

import numpy as np

from explorer.collectors.lines.replay import ROOT, Chains, ThreadStates
from explorer.collectors.lines.user_code import SKIP, UserCode

PYTHON_CALL = "_ExtraFields_PyCall"
C_CALL = "_ExtraFields_PyCCall"


@dataclass(frozen=True, slots=True)
class StackCode:
    """What is known of a code object of which the profiler only wrote down the name."""

    co_filename: str
    co_qualname: str
    co_firstlineno: int

    def co_lines(self) -> Iterator[tuple[int, int, int]]:
        """Its first line is all that is known."""
        yield 0, 0, self.co_firstlineno


@dataclass(slots=True)
class _Frame:
    """A recorded frame that is running: its code, the node it was called from, its nodes by line, the line it is at."""

    code: Any
    parent: int
    lines: dict[int, int]
    line: int


class ProfilerStacks:
    """Turns the event trees of the profiler's sessions into states."""

    method = "torch.profiler with_stack"

    def __init__(self, user_code: UserCode, name_of: Callable[[str, int, str], str]) -> None:
        """`name_of` gives the qualified name of the function around a line (file, line, plain name)."""
        self._user_code = user_code
        self._name_of = name_of
        self._files: dict[str, str] = {}
        self._recorded: dict[str, bool] = {}
        self._codes: dict[tuple[str, int, str], StackCode] = {}

    def states(self, trees: list[Any], native_ids: Mapping[int, int], chains: Chains) -> list[ThreadStates]:
        """States of each thread. `trees` are the roots of experimental_event_tree(); `native_ids` tells threads by the
        time (ns) at which one of their Python calls began."""
        threads: dict[int, list[Any]] = {}
        for tree in sorted(trees, key=lambda tree: tree.start_time_ns):
            threads.setdefault(tree.start_tid, []).append(tree)
        none = np.zeros(0, dtype=np.int64)
        result = []
        for roots in threads.values():
            walk = _Walk(self, chains)
            for root in roots:
                walk.tree(root)
            native_id = next((native_ids[at] for at in walk.calls_at if at in native_ids), None)
            if native_id is not None:
                result.append(
                    ThreadStates(
                        native_id,
                        f"thread {native_id}",
                        np.array(walk.times, dtype=np.int64),
                        np.array(walk.nodes, dtype=np.int64),
                        False,
                        none,
                        none,
                        none,
                        none,
                    )
                )
        return result

    def code(self, file: str, line: int, name: str) -> StackCode | None:
        """The code object of a frame; None where its file is not recorded."""
        key = (file, line, name)
        known = self._codes.get(key)
        if known is None:
            path = self._files.get(file)
            if path is None:
                path = self._files[file] = _whole_path(file)
            # Methods that dataclasses and namedtuples generate belong to the line that calls them.
            if (file == "<string>" and name.startswith("__")) or not self._is_recorded(path):
                return None
            around = self._name_of(path, line, "")
            if name.startswith("<"):
                # A lambda, a comprehension, a generator expression.
                name = f"{around}.<locals>.{name}" if around else name
            known = self._codes[key] = StackCode(path, name if name.endswith(">") else around or name, line)
        return known

    def _is_recorded(self, path: str) -> bool:
        known = self._recorded.get(path)
        if known is None:
            variables = next((vars(module) for module in _modules_of(path)), None)
            known = self._recorded[path] = self._user_code.kind(path, variables) != SKIP
        return known


class _Walk:
    """Through the events of one thread, in order, noting each change of its state."""

    def __init__(self, stacks: ProfilerStacks, chains: Chains) -> None:
        self.times: list[int] = []
        self.nodes: list[int] = []
        self.calls_at: list[int] = []
        self._stacks = stacks
        self._chains = chains
        self._open: list[_Frame] = []
        self._calls: list[_Frame | None] = []
        """The calls that are running; None for C's and those of code that is not recorded."""

    def tree(self, root: Any) -> None:
        """An event and everything inside it."""
        waiting: list[tuple[Any, bool]] = [(root, False)]
        while waiting:
            event, leaves = waiting.pop()
            kind = type(event.extra_fields).__name__
            if leaves:
                self._leave(event)
                continue
            if kind in (PYTHON_CALL, C_CALL):
                self._enter(event, kind)
                waiting.append((event, True))
            waiting.extend((child, False) for child in reversed(event.children))

    def _enter(self, event: Any, kind: str) -> None:
        fields = event.extra_fields
        frame = self._open[-1] if self._open else None
        if frame is not None and self._calls[-1] is frame:
            frame.line = fields.caller.line_number or frame.line
            self._note(event.start_time_ns, self._node(frame))
        if kind == C_CALL:
            self._calls.append(None)
            return
        if len(self.calls_at) < 3:
            self.calls_at.append(event.start_time_ns)
        site = fields.callsite
        try:
            code = self._stacks.code(site.file_name, site.line_number, site.function_name)
        except UnicodeDecodeError:
            # The profiler keeps no hold on the names of functions that are gone by the time it reads them.
            code = None
        if code is None:
            self._calls.append(None)
            return
        parent = self._node(frame) if frame is not None else ROOT
        lines = self._chains.below(parent, cast(Any, code))
        inner = _Frame(code, parent, lines, site.line_number)
        self._open.append(inner)
        self._calls.append(inner)
        # Until its first call only the function is known.
        self._note(event.start_time_ns, self._node(inner, coarse=True))

    def _leave(self, event: Any) -> None:
        ended = self._calls.pop()
        if ended is not None:
            self._open.pop()
        frame = self._open[-1] if self._open else None
        if frame is None:
            self._note(event.end_time_ns, ROOT)
        elif self._calls[-1] is frame:
            self._note(event.end_time_ns, self._node(frame, guess=True))
        elif ended is not None:
            self._note(event.end_time_ns, self._node(frame))

    def _node(self, frame: _Frame, *, guess: bool = False, coarse: bool = False) -> int:
        line = 0 if coarse else frame.line
        found = frame.lines.get(-line if guess else line)
        if found is None:
            found = self._chains.add(frame.lines, frame.parent, frame.code, line, guess=guess)
        return found

    def _note(self, time_ns: int, node: int) -> None:
        self.times.append(time_ns)
        self.nodes.append(node)


def _whole_path(file: str) -> str:
    """The profiler cuts the folders of sys.path off."""
    if file.startswith("<") or os.path.isabs(file):
        return file
    for folder in sys.path:
        path = os.path.abspath(os.path.join(folder, file))
        if os.path.exists(path):
            return path
    return os.path.abspath(file)


def _modules_of(path: str) -> Iterator[ModuleType]:
    for module in list(sys.modules.values()):
        if getattr(module, "__file__", None) == path:
            yield module
