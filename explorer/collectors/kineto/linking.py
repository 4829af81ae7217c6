"""From rows to linked events: tracks, categories, parents, launches, ops, forward ops, steps, lines, modules."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from explorer.collectors.inference_step import inference_step_of
from explorer.collectors.kineto.categories import STEP_NAME, is_runtime
from explorer.collectors.kineto.events import Events
from explorer.collectors.kineto.flows import bind, pair_halves
from explorer.collectors.kineto.inferred_steps import optimizer_steps
from explorer.collectors.kineto.launches import match_by_number
from explorer.collectors.kineto.light import Sparse
from explorer.collectors.kineto.nesting import nearest, nest
from explorer.collectors.kineto.phases import phase_of_name, phases

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.int32]

TIE_ORDER = {
    "step": 0,
    "annotation": 1,
    "data": 1,
    "python": 2,
    "op": 3,
    "collective": 4,
    "runtime": 5,
    "sync": 5,
}
LAUNCH_FLOWS = ("ac2g", "async", "async_cpu_to_gpu", "async_npu", "HostToDevice")
FORWARD_FLOWS = ("fwdbwd", "forward_backward")


@dataclass
class Links:
    """Per event, positions of other events (-1: none), numbers and phases; and the arrows between events."""

    parent: Codes
    own: Ints
    launch: Codes
    op: Codes
    forward: Codes
    step: Codes
    phase: npt.NDArray[np.int8]
    order: Codes
    edges: dict[str, tuple[npt.NDArray[Any], npt.NDArray[Any]]] = field(default_factory=dict)
    steps: list[dict[str, Any]] = field(default_factory=list)
    steps_inferred: bool = False
    """Whether the source marks no steps, so that they were found by its optimizer"""


@dataclass
class Halves:
    """Halves of flow arrows: `key` numbers (category, id) pairs; `category` is a position in `categories`, the source's."""

    key: Ints
    track: Ints
    instant: Ints
    is_source: Flags
    category: npt.NDArray[np.int32]
    categories: list[str]

    def forget(self) -> None:
        """Drop all numbers."""
        self.key = self.track = self.instant = np.empty(0, np.int64)
        self.is_source = np.empty(0, bool)
        self.category = np.empty(0, np.int32)


def link_events(events: Events, halves: Halves, threads: int = 1) -> Links:
    """Resolve everything the source expresses by numbers and by time. `halves` is empty afterwards."""
    tie = np.array([TIE_ORDER.get(c, 3) for c in events.categories], np.int8)[events.category]
    nested = nest(events.nest, events.start, events.duration, tie, threads)
    parent = nested.parent
    del tie

    is_op = ~events.on_device & events.category_in("op", "collective", "data")
    arrows = _arrows(events, halves, nested.order)
    halves.forget()
    launch = _launches(events, arrows)
    op = _ops(events, parent, launch, is_op, arrows)
    forward = _forwards(events, parent, is_op, arrows)
    step, steps, inferred = _steps(events, launch)
    phase = _phases(events, parent, launch, op, forward)

    links = Links(
        parent,
        nested.own,
        launch,
        op,
        forward,
        step,
        phase,
        nested.order,
        steps=steps,
        steps_inferred=inferred,
    )
    launched = np.flatnonzero(events.on_device & (launch >= 0))
    links.edges["launch"] = (launch[launched], launched)
    # What lies inside a backward op has the same forward op; the arrow is drawn once.
    backward = np.flatnonzero(forward >= 0)
    backward = backward[_at(forward, parent[backward]) != forward[backward]]
    links.edges["forward_backward"] = (forward[backward], backward)
    for category, (sources, targets) in arrows.items():
        if category not in LAUNCH_FLOWS and category not in FORWARD_FLOWS:
            known = links.edges.get("flow", (np.empty(0, np.int64), np.empty(0, np.int64)))
            links.edges["flow"] = (np.append(known[0], sources), np.append(known[1], targets))
    return links


def _picked(numbers: Sparse, which: Flags) -> Sparse:
    return Sparse(numbers.row[which], numbers.value[which])


def _at(values: Codes, index: Codes) -> Codes:
    """values[index], -1 where index is -1."""
    return np.where(index >= 0, values[index], np.int32(-1))


def _arrows(events: Events, halves: Halves, order: Codes) -> dict[str, tuple[Ints, Ints]]:
    """By flow category the events at both ends of each arrow."""
    result: dict[str, tuple[Ints, Ints]] = {}
    if not len(halves.key):
        return result
    sources, targets = pair_halves(halves.key, halves.instant, halves.is_source)
    plain = events.asynchronous
    usable = order[~plain[order]] if plain.any() else order
    if len(usable) == 0:
        return result
    categories = halves.category[sources]
    bound = np.full(len(halves.key), -1, np.int64)
    ends = np.zeros(len(halves.key), bool)
    ends[sources] = ends[targets] = True
    needed = np.flatnonzero(ends)
    bound[needed] = bind(
        halves.track[needed],
        halves.instant[needed],
        events.track,
        events.start,
        events.duration,
        usable,
    )
    for code in np.flatnonzero(np.bincount(categories)).tolist():
        mine = categories == code
        first, second = bound[sources[mine]], bound[targets[mine]]
        good = (first >= 0) & (second >= 0) & (first != second)
        result[halves.categories[code]] = (first[good], second[good])
    return result


def _launches(events: Events, arrows: dict[str, tuple[Ints, Ints]]) -> Codes:
    """Device event to host call: by correlation, else by flow arrow."""
    launch = np.full(len(events.start), -1, np.int32)
    runtime_source = np.array([is_runtime(c) or c is None for c in events.source_categories], bool)
    queueing = np.array([(c or "").lower() in ("enqueue", "dequeue") for c in events.source_categories], bool)
    numbered = events.correlation
    host = _picked(
        numbered,
        ~events.on_device[numbered.row]
        & events.category_in("runtime", "sync")[numbered.row]
        & runtime_source[events.source_category[numbered.row]]
        & ~queueing[events.source_category[numbered.row]],
    )
    device = _picked(numbered, events.on_device[numbered.row])
    found = match_by_number(device.value, events.start[device.row], host.value, events.start[host.row])
    good = found >= 0
    launch[device.row[good]] = host.row[found[good]]
    for category in LAUNCH_FLOWS:
        if category in arrows:
            sources, targets = arrows[category]
            fits = events.on_device[targets] & ~events.on_device[sources] & (launch[targets] < 0)
            launch[targets[fits]] = sources[fits]
    return launch


def _ops(
    events: Events, parent: Codes, launch: Codes, is_op: Flags, arrows: dict[str, tuple[Ints, Ints]]
) -> Codes:
    """Innermost responsible op: by the op number the source recorded, else the op around the event or its launch."""
    around = nearest(parent, is_op, itself=False)
    op = around.copy()
    op[events.on_device] = -1
    numbered = events.external
    ops = _picked(numbered, is_op[numbered.row])
    wanted = _picked(
        numbered,
        ~is_op[numbered.row] & (events.on_device | events.category_in("runtime", "sync"))[numbered.row],
    )
    found = match_by_number(wanted.value, events.start[wanted.row], ops.value, events.start[ops.row])
    good = found >= 0
    op[wanted.row[good]] = ops.row[found[good]]
    # Arrows can start at the op itself (Ascend's torch_to_npu), besides those from the runtime's call.
    for category in LAUNCH_FLOWS:
        if category in arrows:
            sources, targets = arrows[category]
            responsible = np.where(is_op[sources], sources, around[sources])
            fits = events.on_device[targets] & (op[targets] < 0) & (responsible >= 0)
            op[targets[fits]] = responsible[fits]
    missing = events.on_device & (op < 0) & (launch >= 0)
    op[missing] = op[launch[missing]]
    return op


def _forwards(events: Events, parent: Codes, is_op: Flags, arrows: dict[str, tuple[Ints, Ints]]) -> Codes:
    """Backward op, and everything in it, to the forward op: by flow arrow, else by autograd sequence number."""
    forward = np.full(len(events.start), -1, np.int32)
    for category in FORWARD_FLOWS:
        if category in arrows:
            sources, targets = arrows[category]
            fits = is_op[sources] & is_op[targets]
            forward[targets[fits]] = sources[fits]
    numbered = _picked(events.sequence, is_op[events.sequence.row] & (events.sequence.value >= 0))
    thread = events.forward_thread.at(numbered.row)
    backward = _picked(numbered, (thread > 0) & (forward[numbered.row] < 0))
    ahead = _picked(numbered, thread <= 0)
    if len(np.unique(thread[thread > 0])) == 1:
        found = match_by_number(
            backward.value, events.start[backward.row], ahead.value, events.start[ahead.row]
        )
        good = found >= 0
        good[good] = events.start[ahead.row[found[good]]] < events.start[backward.row[good]]
        forward[backward.row[good]] = ahead.row[found[good]]
    marked = forward >= 0
    holder = nearest(parent, marked, itself=True)
    return _at(forward, holder)


def _marked_steps(events: Events) -> tuple[Ints, Ints, Ints, list[dict[str, Any]]]:
    """Start, end and number of the ranges that mark steps, and the rows of `steps`."""
    rows: list[dict[str, Any]] = []
    marks = np.flatnonzero(events.category_in("step") & ~events.on_device)
    passes = not len(marks)
    if passes:
        # A serving engine marks no steps: each of its forward passes is one.
        served = events.named(lambda name: inference_step_of(name) is not None)
        marks = np.flatnonzero(served & ~events.on_device)
    if not len(marks):
        return marks, marks, marks, rows
    marks = marks[np.argsort(events.start[marks], kind="stable")]
    numbers = np.arange(len(marks))
    if not passes:
        numbers = np.array(
            [
                int(found.group(1)) if (found := STEP_NAME.fullmatch(events.names[n])) else -1
                for n in events.name[marks]
            ]
        )
    seen: set[tuple[int, int]] = set()
    typical = float(np.median(events.duration[marks]))
    for place, (mark, number) in enumerate(zip(marks.tolist(), numbers.tolist())):
        if (number, int(events.start[mark])) in seen:
            continue
        seen.add((number, int(events.start[mark])))
        last = place == len(marks) - 1
        rows.append(
            {
                "step": number,
                "start_ns": int(events.start[mark]),
                "duration_ns": int(events.duration[mark]),
                # The step open when the profiler stopped is cut by it.
                "complete": not (last and len(marks) > 1 and events.duration[mark] < 0.1 * typical),
                "phase": batch.phase
                if (batch := inference_step_of(events.names[events.name[mark]]))
                else None,
                "window": None,
                "pause_ns": None,
            }
        )
    return events.start[marks], events.start[marks] + events.duration[marks], numbers, rows


def _steps(events: Events, launch: Codes) -> tuple[Codes, list[dict[str, Any]], bool]:
    """Step number of every event: by start time on the host, by its launch on a device; the rows of `steps`; whether they
    are inferred."""
    step = np.full(len(events.start), -1, np.int32)
    starts, ends, numbers, rows = _marked_steps(events)
    inferred = not rows
    if inferred:
        starts, ends, rows = optimizer_steps(events)
        numbers = np.arange(len(rows))
    if not rows:
        return step, rows, False
    for low in range(0, len(step), 1 << 20):
        part = slice(low, low + (1 << 20))
        position = np.searchsorted(starts, events.start[part], "right") - 1
        inside = (position >= 0) & ~events.on_device[part]
        inside &= events.start[part] < ends[np.maximum(position, 0)]
        step[part][inside] = numbers[position[inside]]
    linked = events.on_device & (launch >= 0)
    step[linked] = step[launch[linked]]
    # Work without a launch takes the step of the device-side range of its step, where there is one.
    marked = events.named(lambda name: STEP_NAME.fullmatch(name) is not None)
    ranges = np.flatnonzero(marked & events.on_device & events.category_in("annotation"))
    if len(ranges):
        of_range = np.array(
            [
                int(m.group(1))
                for r in ranges.tolist()
                if (m := STEP_NAME.fullmatch(events.names[events.name[r]]))
            ]
        )
        step[ranges] = of_range
        for track in np.unique(events.track[ranges]):
            here: Ints = np.flatnonzero(events.track[ranges] == track)
            here = here[np.argsort(events.start[ranges[here]], kind="stable")]
            loose = np.flatnonzero(events.on_device & (events.track == track) & (step < 0))
            among = np.searchsorted(events.start[ranges[here]], events.start[loose], "right") - 1
            ends_at = events.start[ranges[here]] + events.duration[ranges[here]]
            fits = (among >= 0) & (events.start[loose] < ends_at[np.maximum(among, 0)])
            step[loose[fits]] = of_range[here[among[fits]]]
    return step, rows, inferred


def _phases(events: Events, parent: Codes, launch: Codes, op: Codes, forward: Codes) -> npt.NDArray[np.int8]:
    opened_by_name = np.zeros(len(events.names) * len(events.categories), np.int8)
    code = events.name.astype(np.int64) * len(events.categories) + events.category
    occurs = np.zeros(len(opened_by_name), bool)
    occurs[code] = True
    for value in np.flatnonzero(occurs).tolist():
        name, category = divmod(value, len(events.categories))
        opened_by_name[value] = phase_of_name(events.names[name], events.categories[category])
    opened = opened_by_name[code]
    del code
    is_forward = np.zeros(len(parent), bool)
    is_forward[forward[forward >= 0]] = True
    phase = phases(parent, opened, is_forward)
    device = np.flatnonzero(events.on_device)
    source = np.where(op[device] >= 0, op[device], launch[device])
    phase[device[source >= 0]] = phase[source[source >= 0]]
    return phase
