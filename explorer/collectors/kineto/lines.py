"""Source lines, call chains and modules of events, from whatever form of Python stacks a trace holds."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from explorer.collectors.kineto.chains import build_chains
from explorer.collectors.kineto.events import Events
from explorer.collectors.kineto.frames import Frame, frames_of_key, parse_frame, parse_stack
from explorer.collectors.kineto.hierarchy import hierarchies_of, modules_of_texts
from explorer.collectors.kineto.light import Sparse
from explorer.collectors.kineto.linking import Links
from explorer.collectors.kineto.nesting import nearest
from explorer.model.ids import module_id, stack_id

Ints = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]
_MODULE = re.compile(r"nn\.Module: (?P<name>.+)")
_INSTANCE = re.compile(r"_\d+$")

METHODS: list[str | None] = [None, "stack", "flow", "forward"]
PRECISIONS: list[str | None] = [None, "exact", "coarse"]
STACK, FLOW, FORWARD = 1, 2, 3
EXACT, COARSE = 1, 2


@dataclass
class Lines:
    """Per event a position in the lists of ids (0: none), method and precision; and the dimension rows."""

    site: Codes
    stack: Codes
    module: Codes
    method: npt.NDArray[np.int8]
    precision: npt.NDArray[np.int8]
    site_ids: Ints
    stack_ids: Ints
    module_ids: Ints
    sites: list[dict[str, Any]] = field(default_factory=list)
    stacks: list[dict[str, Any]] = field(default_factory=list)
    modules: list[dict[str, Any]] = field(default_factory=list)

    def site_of(self, places: Ints) -> Ints:
        """Site ids of some events."""
        return self.site_ids[self.site[places]]

    def stack_of(self, places: Ints) -> Ints:
        """Stack ids of some events."""
        return self.stack_ids[self.stack[places]]


class _Dimensions:
    """Sites and stacks in the order they are met; position 0 stands for none."""

    def __init__(self) -> None:
        self.sites: dict[int, dict[str, Any]] = {}
        self.stacks: dict[int, list[int]] = {}
        self._site_position: dict[int, int] = {}
        self._stack_position: dict[int, int] = {}

    def site(self, frame: Frame) -> int:
        """Position of a frame's site."""
        identity = frame.site_id
        if identity not in self.sites:
            self.sites[identity] = {
                "site_id": identity,
                "file": frame.file,
                "line": frame.line,
                "end_line": None,
                "function": frame.function,
                "code": None,
                "is_user": frame.rank == 2,
            }
            self._site_position[identity] = len(self.sites)
        return self._site_position[identity]

    def stack(self, frames: list[Frame]) -> int:
        """Position of a chain of frames, innermost first."""
        for frame in frames:
            self.site(frame)
        chain = [frame.site_id for frame in frames]
        identity = stack_id(chain)
        if identity not in self.stacks:
            self.stacks[identity] = chain
            self._stack_position[identity] = len(self.stacks)
        return self._stack_position[identity]


def find_lines(
    events: Events, links: Links, call_stack: Sparse, call_stacks: list[str | None], stack_frames: Any = None
) -> Lines:
    """Lines of every event. `call_stack` gives, by event, positions in `call_stacks`, the distinct `Call stack` texts;
    `stack_frames` is the top-level table of that name, which a text can refer to by key.

    A python_function event names the function's first line, so its precision is coarse; a `Call stack` text names the
    line being executed.
    """
    count = len(events.start)
    hierarchies, call_stacks = hierarchies_of(call_stacks)
    dimensions = _Dimensions()
    lines = Lines(
        site=np.zeros(count, np.int32),
        stack=np.zeros(count, np.int32),
        module=np.zeros(count, np.int32),
        method=np.zeros(count, np.int8),
        precision=np.zeros(count, np.int8),
        site_ids=np.zeros(1, np.int64),
        stack_ids=np.zeros(1, np.int64),
        module_ids=np.zeros(1, np.int64),
    )
    _from_python_events(events, links, dimensions, lines)
    _from_texts(links, dimensions, lines, call_stack, call_stacks, stack_frames)

    # Backward work is charged to the line of its forward op.
    backward = np.flatnonzero(links.forward >= 0)
    ahead = links.forward[backward]
    charged = (lines.site[ahead] > 0) & (lines.method[ahead] != FORWARD)
    backward, ahead = backward[charged], ahead[charged]
    lines.site[backward] = lines.site[ahead]
    lines.precision[backward] = lines.precision[ahead]
    lines.method[backward] = FORWARD
    # Device work takes its op's line, else its launch's.
    for source in (links.op, links.launch):
        linked = np.flatnonzero(events.on_device & (lines.site == 0) & (source >= 0))
        linked = linked[lines.site[source[linked]] > 0]
        origin = source[linked]
        lines.site[linked] = lines.site[origin]
        lines.stack[linked] = lines.stack[origin]
        lines.precision[linked] = lines.precision[origin]
        lines.method[linked] = FLOW
    _modules(events, links, lines)
    if not lines.modules and any(hierarchies):
        lines.module, lines.modules = modules_of_texts(links.parent, call_stack, hierarchies)
        _inherit_modules(links, lines)
        lines.module_ids = np.array([0, *(row["module_id"] for row in lines.modules)], np.int64)
    lines.site_ids = np.array([0, *dimensions.sites], np.int64)
    lines.stack_ids = np.array([0, *dimensions.stacks], np.int64)
    lines.sites = list(dimensions.sites.values())
    lines.stacks = [
        {"stack_id": identity, "depth": depth, "site_id": where}
        for identity, chain in dimensions.stacks.items()
        for depth, where in enumerate(chain)
    ]
    return lines


def _from_python_events(events: Events, links: Links, dimensions: _Dimensions, lines: Lines) -> None:
    python = events.category_in("python")
    if not python.any():
        return
    frames = {int(n): parse_frame(events.names[n]) for n in np.unique(events.name[python])}
    rank = np.full(len(events.names) + 1, -1, np.int8)
    for name, frame in frames.items():
        if frame is not None:
            rank[name] = frame.rank
    frame_rank = np.where(python, rank[events.name], -1)
    # User frames first; where a stack has none, those of installed packages.
    for least in (2, 1):
        selected = frame_rank >= least
        if not selected.any():
            continue
        chains = build_chains(links.parent, selected, events.name)
        stacks = np.zeros(len(chains.up) + 1, np.int32)
        sites = np.zeros(len(chains.up) + 1, np.int32)
        for number in range(len(chains.up)):
            chain = [frame for name in chains.labels(number) if (frame := frames.get(name)) is not None]
            stacks[number], sites[number] = dimensions.stack(chain), dimensions.site(chain[0])
        wanted = np.flatnonzero((lines.site == 0) & (chains.chain >= 0))
        lines.site[wanted] = sites[chains.chain[wanted]]
        lines.stack[wanted] = stacks[chains.chain[wanted]]
        lines.method[wanted] = STACK
        lines.precision[wanted] = COARSE


def _from_texts(
    links: Links,
    dimensions: _Dimensions,
    lines: Lines,
    call_stack: Sparse,
    call_stacks: list[str | None],
    stack_frames: Any,
) -> None:
    if not len(call_stack.row):
        return
    stacks = np.zeros(len(call_stacks), np.int32)
    sites = np.zeros(len(call_stacks), np.int32)
    for number, text in enumerate(call_stacks):
        if text and text.startswith("sf:"):
            frames = frames_of_key(text[3:], stack_frames)
        else:
            frames = parse_stack(text) if text else []
        chain = [f for f in frames if f.rank == 2] or [f for f in frames if f.rank == 1]
        if chain:
            stacks[number], sites[number] = dimensions.stack(chain), dimensions.site(chain[0])
    own = np.full(len(lines.site), -1, np.int32)
    own[call_stack.row] = call_stack.value
    has = own >= 0
    has[has] = sites[own[has]] > 0
    holder = nearest(links.parent, has, itself=True)
    wanted = np.flatnonzero((lines.site == 0) & (holder >= 0))
    source = own[holder[wanted]]
    lines.site[wanted] = sites[source]
    lines.stack[wanted] = stacks[source]
    lines.method[wanted] = STACK
    exact = np.array([not (text or "").startswith("sf:") for text in call_stacks], bool)
    lines.precision[wanted] = np.where(exact[source], EXACT, COARSE)


def _modules(events: Events, links: Links, lines: Lines) -> None:
    python = events.category_in("python")
    names = {
        int(n): found["name"]
        for n in (np.unique(events.name[python]) if python.any() else ())
        if (found := _MODULE.fullmatch(events.names[n])) is not None
    }
    if not names:
        return
    is_module = np.zeros(len(events.names) + 1, bool)
    is_module[list(names)] = True
    chains = build_chains(links.parent, python & is_module[events.name], events.name)
    rows: dict[int, dict[str, Any]] = {}
    position: dict[int, int] = {}
    codes = np.zeros(len(chains.up) + 1, np.int32)
    ids: list[int] = []
    paths: list[str] = []
    for number, (up, label) in enumerate(zip(chains.up, chains.label)):
        path = names[label] if up < 0 else f"{paths[up]}.{names[label]}"
        paths.append(path)
        class_name = _INSTANCE.sub("", names[label])
        identity = module_id(path, class_name)
        ids.append(identity)
        if identity not in rows:
            rows[identity] = {
                "module_id": identity,
                "path": path,
                "class_name": class_name,
                "parent_id": ids[up] if up >= 0 else None,
            }
            position[identity] = len(rows)
        codes[number] = position[identity]
    known = np.flatnonzero(chains.chain >= 0)
    lines.module[known] = codes[chains.chain[known]]
    _inherit_modules(links, lines)
    lines.module_ids = np.array([0, *rows], np.int64)
    lines.modules = list(rows.values())


def _inherit_modules(links: Links, lines: Lines) -> None:
    """Backward and device work belong to the module of their forward op or their launch."""
    for source in (links.forward, links.op, links.launch):
        wanted = np.flatnonzero((lines.module == 0) & (source >= 0))
        lines.module[wanted] = lines.module[source[wanted]]
