"""From the raw rows of one window to rows of the run's tables, vectorised."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from explorer.collectors.capture.categories import DEVICE_KINDS, category
from explorer.collectors.capture.coded_names import CodedNames
from explorer.collectors.capture.collective_rows import collective_rows, communication_rows, pair_work
from explorer.collectors.capture.collectives import CollectiveRecorder
from explorer.collectors.capture.compiled import REGION, CompileRecorder
from explorer.collectors.capture.compiled_modules import Traced
from explorer.collectors.capture.compiled_rows import compiled_rows
from explorer.collectors.capture.coverage import Coverage
from explorer.collectors.capture.dimensions import Dimensions
from explorer.collectors.capture.earlier_window import EarlierWindow
from explorer.collectors.capture.flight_entries import FlightEntries
from explorer.collectors.capture.forward_backward import follow_to_own_line, resolve_forward
from explorer.collectors.capture.graph_replays import GraphReplays, Node, launch_kind
from explorer.collectors.capture.host_event import HostEvent
from explorer.collectors.capture.host_states import HostStates
from explorer.collectors.capture.kineto_window import RawWindow
from explorer.collectors.capture.launch_links import has_correlation, links
from explorer.collectors.capture.memory_rows import MEMORY_NAME, memory_rows
from explorer.collectors.capture.metadata import parse_metadata
from explorer.collectors.capture.module_paths import ModulePaths
from explorer.collectors.capture.nesting import parents_of, self_times
from explorer.collectors.capture.optimizer_ranges import take_line_of_first_op
from explorer.collectors.capture.phases import PHASE_NAMES, phases_of
from explorer.collectors.capture.steps import Step, step_of
from explorer.collectors.capture.tracks import Tracks

I64 = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclass(slots=True)
class WindowTables:
    """Rows of one window by table, and the next free event id."""

    tables: dict[str, Any]
    next_event_id: int
    events: int
    lost: dict[str, int]
    modules: set[int]
    data_rows: list[tuple[int, int, int]]
    """(start, end, event id) of the waits for batches."""
    ops: dict[int, tuple[I64, I64]]
    """Beginnings and ends of the ops on each track"""


def build_window(
    raw: RawWindow,
    extra: Sequence[HostEvent],
    states: HostStates,
    dimensions: Dimensions,
    tracks: Tracks,
    steps: list[Step],
    first_event_id: int,
    coverage: Coverage,
    rank: int = 0,
    modules: ModulePaths | None = None,
    compiler: CompileRecorder | None = None,
    collectives: CollectiveRecorder | None = None,
    flights: FlightEntries | None = None,
    replays: GraphReplays | None = None,
    earlier: EarlierWindow | None = None,
    mid_step: bool = False,
) -> WindowTables:
    """All tables of one window. `mid_step`: it ends in the middle of a step; `earlier` knows what such windows had before."""
    earlier = earlier if earlier is not None else EarlierWindow()
    metadata = parse_metadata(raw.metadata)
    raw_names = CodedNames.of(raw.names)
    is_memory = raw_names.where(lambda name: name == MEMORY_NAME)
    kept = np.flatnonzero(~is_memory)
    count, more = len(kept), len(extra)
    total = count + more

    def column(values: I64, fill: int, own: list[int] | None = None) -> I64:
        tail = np.array(own, dtype=np.int64) if own is not None else np.full(more, fill, dtype=np.int64)
        return np.concatenate([values[kept], tail])

    names, categories, on_device = _names_and_categories(raw_names.take(kept), raw.kinds, kept, extra)
    starts = column(raw.starts, 0, [event.start_ns for event in extra])
    durations = column(raw.durations, 0, [event.duration_ns for event in extra])
    resources = column(raw.resource_ids, 0, [event.native_id for event in extra])
    devices = column(raw.device_ids, 0)
    negative = durations < 0
    durations = np.maximum(durations, 0)
    track = _tracks(tracks, on_device, devices, resources)

    attributes = [metadata.attributes[i] for i in kept.tolist()] + [event.attributes for event in extra]
    order = np.lexsort((-durations, starts, track))
    pick = order.tolist()
    names, categories = names.take(order), categories.take(order)
    starts, durations, track, on_device = starts[order], durations[order], track[order], on_device[order]
    resources = resources[order]
    ends = starts + durations
    parents = parents_of(track, starts, ends)
    depths = _levels(parents)
    sequences = column(metadata.sequences, -1)[order]
    forward_threads = column(metadata.forward_threads, 0)[order]
    flow_ids = column(raw.flow_ids, 0)[order]
    flow_types = column(raw.flow_types, 0)[order]
    flow_starts = np.concatenate([raw.flow_starts[kept], np.zeros(more, dtype=bool)])[order]
    correlation = column(raw.correlation_ids, 0)[order]
    linked = column(raw.linked_ids, 0)[order]

    forward, forward_method, in_backward = resolve_forward(
        names=names,
        starts=starts,
        tracks=track,
        parents=parents,
        depths=depths,
        sequences=sequences,
        forward_threads=forward_threads,
        flow_ids=flow_ids,
        flow_types=flow_types,
        flow_starts=flow_starts,
    )
    phase = phases_of(
        names, categories, track, starts, parents, depths, sequences, in_backward, earlier.phases
    )

    # Lines: what each thread was executing when the event began.
    node = np.zeros(total, dtype=np.int64)
    module = np.zeros(total, dtype=np.int64)
    for native_id in np.unique(resources[~on_device]).tolist():
        rows = np.flatnonzero(~on_device & (resources == native_id))
        node[rows] = states.node_at(native_id, starts[rows])
        module[rows] = states.module_at(native_id, starts[rows])
    take_line_of_first_op(names, parents, node, dimensions.chains)
    modules = modules if modules is not None else ModulePaths()
    module = np.array(modules.module_ids, dtype=np.int64)[module]
    stacks, sites, coarse = dimensions.arrays()
    site, stack = sites[node], stacks[node]
    is_coarse = coarse[node]
    # Compiled code shows no lines of its own: what runs in it without provenance has its function only.
    is_coarse |= _in_compiled_region(names, parents, depths) & dimensions.at_definition()[node]
    generated = np.array(dimensions.generated, dtype=bool)[node]
    read_as = _STACK if dimensions.from_stacks else _TRACED
    attribution = np.where(site != 0, np.where(generated, _COMPILED, read_as), _NONE)
    is_guess = np.array(dimensions.guess, dtype=bool)[node]

    # Backward rows take the forward op's line, unless user code of its own runs inside the node (a custom backward, a
    # hook, a recomputed forward): that line is both executing and responsible.
    own_code = _runs_own_code(node, parents, depths, in_backward)
    target = follow_to_own_line(forward, in_backward & ~own_code)
    inherits = in_backward & ~own_code & (target >= 0)
    inherits[inherits] = site[target[inherits]] != 0
    lines_of = np.where(inherits, target, np.arange(total))
    site = site[lines_of]
    is_coarse, is_guess = is_coarse[lines_of], is_guess[lines_of]
    _trace_modules(
        module, node, parents, in_backward & own_code, lines_of, dimensions.traced_modules, modules
    )
    module = module[lines_of]
    attribution = np.where(inherits, _FORWARD, attribution)
    recomputed = _recomputed(site, in_backward, own_code, sequences)
    before = earlier.forward_ops(names, track, parents, depths, sequences, in_backward & ~own_code, forward)
    for row, known in before.items():
        if known.site:
            site[row], module[row], attribution[row] = known.site, known.module, _FORWARD
            is_coarse[row], is_guess[row] = known.is_coarse, known.is_guess

    shares: list[tuple[int, int, float]] = []
    shared = np.zeros(total, dtype=bool)
    if compiler is not None:
        kernels = compiled_rows(names, parents, forward, module, compiler, dimensions, modules)
        site[kernels.rows] = kernels.sites
        attribution[kernels.rows] = _COMPILED
        module[list(kernels.modules)] = list(kernels.modules.values())
        is_coarse[kernels.rows] = is_guess[kernels.rows] = False
        shared[kernels.rows] = kernels.shared
        # Without provenance only the line that calls the compiled function is known.
        is_coarse[kernels.unknown] = True
        shares = kernels.shares
        for row, kernel_names in kernels.kernels.items():
            known = json.loads(attributes[pick[row]] or "{}")
            attributes[pick[row]] = json.dumps(known | {"kernels": kernel_names})
    where = {old: new for new, old in enumerate(pick)}
    for at, event in enumerate(extra):
        if event.line is not None:
            row = where[count + at]
            site[row] = dimensions.responsible([event.line])
            attribution[row] = _TRACED
            is_coarse[row] = is_guess[row] = False

    # Device rows: by the ids of the window to the launching call and the op.
    launch, op = links(categories, on_device, correlation, linked, parents, depths)
    has_op = on_device & (op >= 0)
    for source in (has_op, on_device & (op < 0) & (launch >= 0)):
        above = np.where(op[source] >= 0, op[source], launch[source])
        site[source], stack[source], is_coarse[source] = site[above], stack[above], is_coarse[above]
        attribution[source] = np.where(site[above] != 0, _FLOW, _NONE)
        is_guess[source] = is_guess[above]
        phase[source] = phase[above]
        module[source] = module[above]
        forward[source] = forward[above]

    if replays is not None:
        launched = np.zeros(total, dtype=bool)
        launched[launch[on_device & (launch >= 0)]] = True
        above = np.where(op >= 0, op, np.arange(total))
        replays.captures(
            names,
            launched,
            starts,
            {
                row: Node(
                    kind,
                    int(site[above[row]]),
                    int(module[above[row]]),
                    int(phase[above[row]]),
                    bool(is_coarse[above[row]]),
                )
                for row, kind in names.found(launch_kind).items()
            },
        )
        replayed = replays.replays(
            names, categories, on_device, starts, launch, [attributes[i] for i in pick]
        )
        # Of the others only the line of the replay is known, which many kernels share.
        is_coarse[replayed.unknown] = True
        for row, origin, by_number in zip(replayed.rows, replayed.nodes, replayed.by_number):
            site[row], module[row], phase[row] = origin.site, origin.module, origin.phase
            is_coarse[row], is_guess[row] = origin.is_coarse, not by_number
            attribution[row] = _REPLAY if origin.site else _NONE
    # Work that a backend does on a thread of its own belongs to the call that asked for it.
    calls, works = communication_rows(names, parents)
    pairs = pair_work(calls, works, starts, parents)
    for work, call in pairs.items():
        launch[work] = op[work] = call
        if track[work] != track[call]:
            site[work], stack[work], phase[work] = site[call], stack[call], phase[call]
            module[work], is_coarse[work] = module[call], is_coarse[call]
            attribution[work] = _ORDER if site[call] else _NONE

    step = step_of(starts, steps)
    linked_rows = np.flatnonzero(on_device & ((op >= 0) | (launch >= 0)))
    if len(linked_rows):
        source = np.where(op[linked_rows] >= 0, op[linked_rows], launch[linked_rows])
        step[linked_rows] = step[source]
    own = self_times(starts, durations, parents)
    by_time = np.argsort(starts, kind="stable")
    event_id = np.empty(total, dtype=np.int64)
    event_id[by_time] = first_event_id + np.arange(total)

    numbered = np.flatnonzero((sequences >= 0) & (forward_threads == 0) & ~in_backward & ~on_device)
    numbered = numbered[np.argsort(starts[numbered], kind="stable")]
    known_of = [values[numbered] for values in (event_id, site, module, is_coarse, is_guess)]
    earlier.keep(numbered, sequences, known_of, mid_step=mid_step)
    forward_id = np.where(forward >= 0, event_id[np.maximum(forward, 0)] if total else forward, -1)
    for row, known in before.items():
        forward_id[row] = known.event_id

    def ids_of(rows: I64) -> pa.Array:
        return _nullable(event_id[np.maximum(rows, 0)] if total else rows, rows < 0)

    shapes = [metadata.shapes[i] for i in kept.tolist()] + [None] * more
    dtypes = [metadata.dtypes[i] for i in kept.tolist()] + [None] * more
    sizes = [None] * count + [event.size_bytes for event in extra]
    precision = np.select(
        [attribution == _NONE, shared, is_coarse, is_guess | (attribution == _ORDER)],
        [-1, _SHARED, _COARSE, _INFERRED],
        _EXACT,
    )
    events = pa.table(
        {
            "event_id": event_id,
            "parent_id": ids_of(parents),
            "track_id": track.astype(np.int32),
            "category": categories.arrow(),
            "name": names.arrow(),
            "start_ns": starts,
            "duration_ns": durations,
            "self_ns": own,
            "step": _nullable(step.astype(np.int32), step < 0),
            "phase": _words(phase, PHASE_NAMES),
            "correlation_id": _nullable(correlation, ~has_correlation(categories, on_device, correlation)),
            "launch_id": ids_of(launch),
            "op_id": ids_of(op),
            "forward_id": _nullable(forward_id, forward_id < 0),
            "site_id": _nullable(site, site == 0),
            "stack_id": _nullable(stack, stack == 0),
            "attribution": _words(attribution, _ATTRIBUTIONS),
            "precision": _words(precision, _PRECISIONS),
            "module_id": _nullable(module, module == 0),
            "size_bytes": pa.array([sizes[i] for i in pick], pa.int64()),
            "shapes": pa.array([shapes[i] for i in pick], pa.string()).dictionary_encode(),
            "dtypes": pa.array([dtypes[i] for i in pick], pa.string()).dictionary_encode(),
            "attributes": pa.array([attributes[i] for i in pick], pa.string()).dictionary_encode(),
        }
    ).take(pa.array(by_time))
    host_ops = categories.where(lambda c: c == "op")
    unsure = is_coarse | is_guess | (attribution == _ORDER)
    kind = np.where(site == 0, 0, np.where(unsure, 1, 2)).astype(np.int8)
    coverage.add(phase[host_ops], kind[host_ops], own[host_ops])

    tables: dict[str, Any] = {"events": events}
    if edges := _edges(event_id, forward, forward_method, launch, on_device, rank):
        tables["edges"] = pa.concat_tables(edges)
    again = np.flatnonzero(recomputed)
    if len(again) or shares:
        parts = [(int(event_id[row]), int(site[row]), "recomputed", 1.0) for row in again.tolist()]
        parts += [(int(event_id[row]), at, "responsible", share) for row, at, share in shares]
        ids, lines, roles, parts_of = zip(*parts)
        tables["event_sites"] = {
            "event_id": list(ids),
            "site_id": list(lines),
            "role": list(roles),
            "share": list(parts_of),
        }
    if calls or works:
        groups = collectives.groups() if collectives is not None else {}
        tables["collectives"] = collective_rows(
            calls,
            works,
            pairs,
            starts,
            ends,
            resources,
            event_id,
            collectives.take() if collectives is not None else [],
            flights.calls(int(starts.min()), int(ends.max()), groups) if flights is not None else [],
            [shapes[i] for i in pick],
            [dtypes[i] for i in pick],
            groups,
        )
    memory = np.flatnonzero(is_memory)
    if len(memory):
        tables["memory_events"] = memory_rows(
            raw, memory, metadata.attributes, states, (stacks, sites), steps, first_event_id + total
        )
        total += len(memory)
    lost = {"negative_duration": int(negative.sum())} if np.any(negative) else {}
    waits = np.flatnonzero(categories.where(lambda c: c == "data")).tolist()
    data_rows = [(int(starts[at]), int(ends[at]), int(event_id[at])) for at in waits]
    ops = {
        thread: (starts[host_ops & (track == thread)], ends[host_ops & (track == thread)])
        for thread in np.unique(track[host_ops]).tolist()
    }
    return WindowTables(
        tables, first_event_id + total, total, lost, set(np.unique(module).tolist()), data_rows, ops
    )


_ATTRIBUTIONS = ("none", "traced", "forward", "flow", "order", "compiled", "stack", "graph_replay")
_NONE, _TRACED, _FORWARD, _FLOW, _ORDER, _COMPILED, _STACK, _REPLAY = range(8)
_PRECISIONS = ("exact", "coarse", "inferred", "shared")
_EXACT, _COARSE, _INFERRED, _SHARED = range(4)


def _names_and_categories(
    kept_names: CodedNames, raw_kinds: list[str], kept: npt.NDArray[np.intp], extra: Sequence[HostEvent]
) -> tuple[CodedNames, CodedNames, Bools]:
    """Names and categories of the profiler's rows and, after them, of our own; and which lie on a device."""
    kinds = CodedNames.of(raw_kinds).take(kept)
    # One question per pair of kind and name.
    pairs, pair_of = np.unique(
        kinds.codes.astype(np.int64) * max(1, len(kept_names.texts)) + kept_names.codes, return_inverse=True
    )
    words = [
        category(kinds.texts[pair // len(kept_names.texts)], kept_names.texts[pair % len(kept_names.texts)])
        for pair in pairs.tolist()
    ]
    known = CodedNames.of(words)
    categories = CodedNames(known.texts, known.codes[pair_of] if len(pairs) else kinds.codes[:0])
    on_device = kinds.where(lambda kind: kind in DEVICE_KINDS)
    return (
        kept_names.followed_by([event.name for event in extra]),
        categories.followed_by([event.category for event in extra]),
        np.concatenate([on_device, np.zeros(len(extra), dtype=bool)]),
    )


def _nullable(values: Any, missing: Any) -> pa.Array:
    return pa.array(values, mask=np.asarray(missing, dtype=bool))


def _words(codes: Any, words: tuple[str, ...]) -> pa.DictionaryArray:
    codes = np.asarray(codes, dtype=np.int8)
    return pa.DictionaryArray.from_arrays(pa.array(codes, mask=codes < 0), pa.array(words))


def _tracks(tracks: Tracks, on_device: Bools, devices: I64, resources: I64) -> I64:
    result = np.zeros(len(resources), dtype=np.int64)
    for native_id in np.unique(resources[~on_device]).tolist():
        result[~on_device & (resources == native_id)] = tracks.thread(native_id)
    for device, stream in {
        (d, r) for d, r in zip(devices[on_device].tolist(), resources[on_device].tolist())
    }:
        result[on_device & (devices == device) & (resources == stream)] = tracks.stream(device, stream)
    return result


def _levels(parents: I64) -> list[npt.NDArray[np.intp]]:
    """Rows by nesting depth, outermost first. Parents precede their children."""
    depth = np.where(parents < 0, 0, -1)
    waiting = np.flatnonzero(parents >= 0)
    levels = [np.flatnonzero(parents < 0)]
    while len(waiting):
        ready = depth[parents[waiting]] == len(levels) - 1
        here = waiting[ready]
        depth[here] = len(levels)
        levels.append(here)
        waiting = waiting[~ready]
    return levels


def _runs_own_code(node: I64, parents: I64, depths: list[npt.NDArray[np.intp]], in_backward: Bools) -> Bools:
    """Backward rows that began while another user line than the one that called backward() was executing."""
    caller = node.copy()
    own = np.zeros(len(node), dtype=bool)
    for rows in depths[1:]:
        above = parents[rows]
        inside = in_backward[rows] & in_backward[above]
        caller[rows[inside]] = caller[above[inside]]
    own[in_backward] = node[in_backward] != caller[in_backward]
    return own & (node != 0)


def _trace_modules(
    module: I64,
    node: I64,
    parents: I64,
    own_code: Bools,
    lines_of: I64,
    traced: dict[int, Traced],
    paths: ModulePaths,
) -> None:
    """Give the rows of graphs that run as Python the modules of their graph nodes, in place. `own_code` are those of backward
    graphs: what called such a graph has the module that entered the forward one, at its row of `lines_of`."""
    for row in np.flatnonzero(np.isin(node, list(traced))).tolist():
        caller = row
        while own_code[caller] and parents[caller] >= 0:
            caller = parents[caller]
        module[row] = paths.placed(*traced[int(node[row])], int(module[lines_of[caller]]))


def _in_compiled_region(names: CodedNames, parents: I64, depths: list[npt.NDArray[np.intp]]) -> Bools:
    """Rows inside torch.compile's own range of a call."""
    inside = names.where(lambda name: name.startswith(REGION))
    if np.any(inside):
        for rows in depths[1:]:
            inside[rows] |= inside[parents[rows]]
    return inside


def _recomputed(site: I64, in_backward: Bools, own_code: Bools, sequences: I64) -> Bools:
    """Forward lines that run again inside the backward pass (activation checkpointing)."""
    inside = in_backward & own_code & (site != 0)
    if not np.any(inside):
        return inside
    forward_sites = np.unique(site[~in_backward & (sequences >= 0)])
    return inside & np.isin(site, forward_sites)


def _edges(
    event_id: I64,
    forward: I64,
    forward_method: npt.NDArray[np.int8],
    launch: I64,
    on_device: Bools,
    rank: int,
) -> list[pa.Table]:
    result = []
    direct = np.flatnonzero((forward >= 0) & (forward_method > 0) & (forward_method < 4) & ~on_device)
    launched = np.flatnonzero(launch >= 0)
    for rows, source, kind in ((direct, forward, "forward_backward"), (launched, launch, "launch")):
        if len(rows):
            result.append(
                pa.table(
                    {
                        "source_id": event_id[source[rows]],
                        "target_rank": np.full(len(rows), rank, dtype=np.int32),
                        "target_id": event_id[rows],
                        "kind": pa.array([kind] * len(rows)).dictionary_encode(),
                    }
                )
            )
    return result
