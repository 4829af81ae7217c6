"""Source lines, call chains and modules of events, from whatever form of Python stacks a trace holds."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from explorer.collectors.kineto.chains import build_chains
from explorer.collectors.kineto.events import Events
from explorer.collectors.kineto.frames import Frame, parse_frame, parse_stack
from explorer.collectors.kineto.linking import Links
from explorer.collectors.kineto.nesting import nearest
from explorer.model.ids import module_id, stack_id

Ints = npt.NDArray[np.int64]
Objects = npt.NDArray[np.object_]
_MODULE = re.compile(r"nn\.Module: (?P<name>.+)")
_INSTANCE = re.compile(r"_\d+$")

METHODS = (None, "stack", "flow", "forward")
PRECISIONS = (None, "exact", "coarse")


@dataclass
class Lines:
    """Per event: site, stack and module ids (0: none), method and precision as positions; and the dimension rows."""

    site: Ints
    stack: Ints
    module: Ints
    method: Ints
    precision: Ints
    sites: list[dict[str, Any]] = field(default_factory=list)
    stacks: list[dict[str, Any]] = field(default_factory=list)
    modules: list[dict[str, Any]] = field(default_factory=list)


class _Dimensions:
    def __init__(self) -> None:
        self.sites: dict[int, dict[str, Any]] = {}
        self.stacks: dict[int, list[int]] = {}

    def site(self, frame: Frame) -> int:
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
        return identity

    def stack(self, frames: list[Frame]) -> int:
        chain = [self.site(frame) for frame in frames]
        identity = stack_id(chain)
        self.stacks[identity] = chain
        return identity


def find_lines(events: Events, links: Links, call_stack: Ints, call_stacks: list[str | None]) -> Lines:
    """Lines of every event.

    `call_stack` gives each event's position in `call_stacks`, the distinct `Call stack` texts (the last is None).
    A python_function event names the function's first line, so its precision is coarse; a `Call stack` text names the
    line being executed.
    """
    count = len(events.start)
    dimensions = _Dimensions()
    site, stack = np.zeros(count, np.int64), np.zeros(count, np.int64)
    method, precision = np.zeros(count, np.int64), np.zeros(count, np.int64)
    _from_python_events(events, links, dimensions, site, stack, method, precision)
    _from_texts(events, links, dimensions, call_stack, call_stacks, site, stack, method, precision)

    # Backward work is charged to the line of its forward op.
    ahead = links.forward
    charged = (ahead >= 0) & (site[np.maximum(ahead, 0)] > 0) & (method[np.maximum(ahead, 0)] != 3)
    site[charged] = site[ahead[charged]]
    precision[charged] = precision[ahead[charged]]
    method[charged] = 3
    # Device work takes its op's line, else its launch's.
    for source in (links.op, links.launch):
        linked = events.on_device & (site == 0) & (source >= 0)
        linked[linked] = site[source[linked]] > 0
        site[linked] = site[source[linked]]
        stack[linked] = stack[source[linked]]
        precision[linked] = precision[source[linked]]
        method[linked] = 2
    module, modules = _modules(events, links)
    return Lines(
        site,
        stack,
        module,
        method,
        precision,
        list(dimensions.sites.values()),
        [
            {"stack_id": identity, "depth": depth, "site_id": where}
            for identity, chain in dimensions.stacks.items()
            for depth, where in enumerate(chain)
        ],
        modules,
    )


def _from_python_events(
    events: Events,
    links: Links,
    dimensions: _Dimensions,
    site: Ints,
    stack: Ints,
    method: Ints,
    precision: Ints,
) -> None:
    python = events.category_in("python")
    if not python.any():
        return
    frames = {int(n): parse_frame(events.names[n]) for n in np.unique(events.name[python])}
    rank = np.full(len(events.names) + 1, -1, np.int64)
    for name, frame in frames.items():
        if frame is not None:
            rank[name] = frame.rank
    frame_rank = np.where(python, rank[events.name], -1)
    # User frames first; where a stack has none, those of installed packages.
    for least in (2, 1):
        chains = build_chains(links.parent, frame_rank >= least, events.name)
        ids = np.zeros(len(chains.up) + 1, np.int64)
        first = np.zeros(len(chains.up) + 1, np.int64)
        for number in range(len(chains.up)):
            chain = [frame for name in chains.labels(number) if (frame := frames.get(name)) is not None]
            ids[number] = dimensions.stack(chain)
            first[number] = dimensions.site(chain[0])
        wanted = (site == 0) & (chains.chain >= 0)
        site[wanted] = first[chains.chain[wanted]]
        stack[wanted] = ids[chains.chain[wanted]]
        method[wanted] = 1
        precision[wanted] = 2
        if (site[python] > 0).all():
            break


def _from_texts(
    events: Events,
    links: Links,
    dimensions: _Dimensions,
    call_stack: Ints,
    call_stacks: list[str | None],
    site: Ints,
    stack: Ints,
    method: Ints,
    precision: Ints,
) -> None:
    if len(call_stacks) <= 1:
        return
    ids = np.zeros(len(call_stacks), np.int64)
    first = np.zeros(len(call_stacks), np.int64)
    for number, text in enumerate(call_stacks):
        frames = parse_stack(text) if text else []
        chain = [f for f in frames if f.rank == 2] or [f for f in frames if f.rank == 1]
        if chain:
            ids[number], first[number] = dimensions.stack(chain), dimensions.site(chain[0])
    own = first[call_stack] > 0
    holder = nearest(links.parent, own, itself=True)
    wanted = (site == 0) & (holder >= 0)
    source = call_stack[holder[wanted]]
    site[wanted] = first[source]
    stack[wanted] = ids[source]
    method[wanted] = 1
    precision[wanted] = 1


def _modules(events: Events, links: Links) -> tuple[Ints, list[dict[str, Any]]]:
    module = np.zeros(len(events.start), np.int64)
    python = events.category_in("python")
    names = {
        int(n): found["name"]
        for n in np.unique(events.name[python])
        if (found := _MODULE.fullmatch(events.names[n])) is not None
    }
    if not names:
        return module, []
    is_module = np.zeros(len(events.names) + 1, bool)
    is_module[list(names)] = True
    chains = build_chains(links.parent, python & is_module[events.name], events.name)
    rows: dict[int, dict[str, Any]] = {}
    ids = np.zeros(len(chains.up) + 1, np.int64)
    paths: list[str] = []
    for number, (up, label) in enumerate(zip(chains.up, chains.label)):
        path = names[label] if up < 0 else f"{paths[up]}.{names[label]}"
        paths.append(path)
        class_name = _INSTANCE.sub("", names[label])
        ids[number] = module_id(path, class_name)
        rows[int(ids[number])] = {
            "module_id": int(ids[number]),
            "path": path,
            "class_name": class_name,
            "parent_id": int(ids[up]) if up >= 0 else None,
        }
    known = chains.chain >= 0
    module[known] = ids[chains.chain[known]]
    # Backward and device work belong to the module of their forward op or their launch.
    for source in (links.forward, links.op, links.launch):
        wanted = (module == 0) & (source >= 0)
        module[wanted] = module[source[wanted]]
    return module, list(rows.values())
