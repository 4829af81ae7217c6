"""A system profile's events (framework, runtime, hardware) of one process, linked by their flow ids.

Chain: framework op -> runtime call (neuron_rt) -> execution on a core (neuron_hw). Under adaptive eager execution several
ops flow into one execution: its cost is shared between them in equal parts, since a profile says nothing finer.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from explorer.collectors.call_stacks import CallStack, CallStacks, Frame
from explorer.collectors.inference_step import inference_step_of
from explorer.collectors.nesting import nest
from explorer.collectors.neuron.bulk import BulkWriter
from explorer.collectors.neuron.executions import Execution
from explorer.collectors.neuron.host_match import OwnEvents
from explorer.collectors.neuron.tables import ProfileTables
from explorer.collectors.step_name import step_of
from explorer.collectors.track_table import TrackTable
from explorer.model.vocabulary import CATEGORIES

_PYTHON = re.compile(r"^(.+?)\((\d+)\): (.+)$")
_OP = re.compile(r"^[A-Za-z_]\w*::\w")
EXECUTION, COLLECTIVE = "nc_exec_running", "cc_running"
SYNC_POINT = "timestamp_sync_point"
_KINDS = {
    "cpu_op": "op",
    "user_annotation": "annotation",
    "python_function": "python",
    "privateuse1_runtime": "runtime",
    "privateuse1_driver": "runtime",
}
_HOST_KEYS = ("cpu_timestamp_ns", "host_timestamp_ns", "cpu_timestamp", "cpu_ts")
_DEVICE_KEYS = ("nc_timestamp_ns", "device_timestamp_ns", "nc_timestamp", "nc_ts")
_SIZE_KEYS = ("size_bytes", "transfer_size_bytes", "size", "bytes", "nbytes")
CLOCK_SLACK_NS = 1_000
"""An execution may start this many ns before its runtime call by the clocks' disagreement and still be its child."""


@dataclass
class SystemEvents:
    """Rows of one process as columns, in time order, and what linking found."""

    names: list[str]
    sources: list[str]
    categories: list[str]
    start: np.ndarray[Any, np.dtype[np.int64]]
    duration: np.ndarray[Any, np.dtype[np.int64]]
    track: np.ndarray[Any, np.dtype[np.int64]]
    core: list[int | None]
    attributes: list[dict[str, Any]]
    flows: list[list[str]]
    threads: list[int | None]
    quarantined: list[dict[str, Any]] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.names)


def read_events(
    tables: ProfileTables,
    instance: str | None,
    process: int | None,
    tracks: TrackTable,
    own: OwnEvents | None = None,
) -> SystemEvents:
    """All rows of one process; rows with impossible times are set aside. Threads that `own` knows keep their tracks."""
    conditions = []
    if instance is not None:
        conditions.append("instance_id IS NOT DISTINCT FROM " + _literal(instance))
    if process is not None:
        conditions.append(f"process_id IS NOT DISTINCT FROM {int(process)}")
    where = " AND ".join(conditions) or "true"
    rows = tables.rows(f"SELECT * FROM SystemProfileEvents WHERE {where} ORDER BY start_ts, end_ts DESC, id")
    found = SystemEvents(
        [], [], [], np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64), [], [], [], []
    )
    starts, durations, numbers = [], [], []
    for row in rows:
        start, duration = row["start_ts"], row["duration_ns"]
        if duration is None and start is not None and row["end_ts"] is not None:
            duration = row["end_ts"] - start
        if start is None or duration is None or duration < 0:
            found.quarantined.append(row)
            continue
        extra = _json(row["extra_attributes_json"])
        source = (row["trace_event_source"] or "").lower()
        name = row["name"] or ""
        starts.append(start)
        durations.append(duration)
        known = own.track(row["thread_id"]) if own is not None and source != "neuron_hw" else None
        numbers.append(_track(tracks, row, source, name) if known is None else known)
        found.names.append(name)
        found.sources.append(source)
        found.categories.append(category_of(name, source, extra))
        found.core.append(row["nc_idx"])
        found.threads.append(row["thread_id"])
        found.flows.append([str(flow) for flow in row["flow_id"] or []])
        kept = {
            key: row[key]
            for key in (
                "id",
                "trace_event_source",
                "worker_gid",
                "pcore_idx",
                "framework_stream_id",
                "flow_id",
                "nc_idx",
            )
            if row[key] is not None
        }
        found.attributes.append(kept | extra)
    found.start = np.array(starts, np.int64)
    found.duration = np.array(durations, np.int64)
    found.track = np.array(numbers, np.int64)
    return found


def category_of(name: str, source: str, extra: dict[str, Any]) -> str:
    """The run's category of a system event."""
    if source == "neuron_hw":
        return {EXECUTION: "kernel", COLLECTIVE: "collective", "cc_exec_barrier": "semaphore"}.get(
            name, "other"
        )
    if source == "neuron_rt":
        return "sync" if "wait" in name or "synchronize" in name else "runtime"
    if _PYTHON.match(name):
        return "python"
    if step_of(name) is not None:
        return "step"
    kind = str(extra.get("category", extra.get("cat", ""))).lower()
    if kind in _KINDS:
        return _KINDS[kind]
    if kind in CATEGORIES:
        return kind
    return "op" if _OP.match(name) else "annotation"


def _track(tracks: TrackTable, row: dict[str, Any], source: str, name: str) -> int:
    if source != "neuron_hw":
        return tracks.thread(row["process_id"], row["thread_id"])
    core = row["nc_idx"] if row["nc_idx"] is not None else 0
    label = "collective executions" if name.startswith("cc_") else "executions"
    if name not in (EXECUTION, COLLECTIVE):
        label = "hardware events"
    return tracks.stream("neuron", core, None, label)


def sync_points(events: SystemEvents) -> dict[int, list[tuple[int, int]]]:
    """(host ns, device ns) pairs by core, from timestamp_sync_point rows."""
    pairs: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for place, name in enumerate(events.names):
        if name != SYNC_POINT:
            continue
        extra = events.attributes[place]
        device = next((extra[key] for key in _DEVICE_KEYS if isinstance(extra.get(key), int)), None)
        host = next((extra[key] for key in _HOST_KEYS if isinstance(extra.get(key), int)), None)
        if device is not None:
            pairs[events.core[place] or 0].append(
                (int(events.start[place]) if host is None else host, device)
            )
    return pairs


@dataclass
class Linked:
    """What linking adds to the rows: parents, own time, responsible op, launch, line, step (-1: none)."""

    parent: np.ndarray[Any, np.dtype[np.int64]]
    own: np.ndarray[Any, np.dtype[np.int64]]
    op: np.ndarray[Any, np.dtype[np.int64]]
    launch: np.ndarray[Any, np.dtype[np.int64]]
    step: np.ndarray[Any, np.dtype[np.int64]]
    stack: list[CallStack | None]
    executions: dict[int, list[tuple[int, list[int]]]]
    """By core: (row of the execution, rows of the ops fused into it)"""
    steps: list[tuple[int, int, int]]
    """(step, start, end)"""
    phases: dict[int, str]
    """Phase of the steps that say it: prefill or decode"""
    ids: np.ndarray[Any, np.dtype[np.int64]]
    """Event numbers: new ones, or those of our own capture's ops"""
    is_own: np.ndarray[Any, np.dtype[np.bool_]]
    """Rows that our own capture has recorded already"""


def link(
    events: SystemEvents, stacks: CallStacks, first_id: int = 0, own_ops: OwnEvents | None = None
) -> Linked:
    """Parents by nesting, lines from enclosing Python rows, launches and ops by flow ids.

    `own_ops` are ops of our own capture: framework rows that are one of them take its number, line and step.
    """
    count = len(events)
    ids = np.arange(first_id, first_id + count, dtype=np.int64)
    is_own = np.zeros(count, bool)
    parent, own = nest(events.track, events.start, events.duration)
    order = np.lexsort((-events.duration, events.start)).tolist()
    op = np.full(count, -1, np.int64)
    stack: list[CallStack | None] = [None] * count
    chain: list[tuple[Frame, ...]] = [()] * count
    for place in order:
        above = int(parent[place])
        frames = chain[above] if above >= 0 else ()
        python = _PYTHON.match(events.names[place]) if events.categories[place] == "python" else None
        if python:
            frames = (Frame(python.group(1), int(python.group(2)), python.group(3)), *frames)
        chain[place] = frames
        stack[place] = stacks.stack(frames) if frames else None
        if events.categories[place] == "op" and events.sources[place] == "framework":
            op[place] = place
        elif above >= 0:
            op[place] = op[above]
    launch = np.full(count, -1, np.int64)
    executions = _flows(events, op, launch)
    steps = _steps(events)
    step = _step_of(events.start, steps)
    for place in range(count):
        if own_ops is None:
            break
        if events.sources[place] != "framework" or events.categories[place] not in (
            "op",
            "annotation",
            "step",
        ):
            continue
        match = own_ops.find(events.threads[place], events.names[place], int(events.start[place]))
        if match is not None:
            ids[place], is_own[place] = match.event_id, True
            step[place] = -1 if match.step is None else match.step
            stack[place] = match.chain or stack[place]
    for core in executions.values():
        for row, ops in core:
            cause = int(launch[row])
            if ops:
                op[row] = ops[0]
                step[row] = step[ops[0]]
                # The first op's chain; the others are charged through event_sites.
                stack[row] = stack[ops[0]]
            elif cause >= 0:
                step[row] = step[cause]
                stack[row] = stack[cause]
    begins = {begin: number for number, begin, _ in steps}
    phases = {
        begins[int(events.start[place])]: batch.phase
        for place, name in enumerate(events.names)
        if (batch := inference_step_of(name)) is not None and int(events.start[place]) in begins
    }
    return Linked(parent, own, op, launch, step, stack, executions, steps, phases, ids, is_own)


def _flows(
    events: SystemEvents, op: np.ndarray[Any, Any], launch: np.ndarray[Any, Any]
) -> dict[int, list[tuple[int, list[int]]]]:
    by_flow: dict[str, list[int]] = defaultdict(list)
    for place, flows in enumerate(events.flows):
        if events.sources[place] != "neuron_hw":
            for flow in flows:
                by_flow[flow].append(place)
    executions: dict[int, list[tuple[int, list[int]]]] = defaultdict(list)
    for place, name in enumerate(events.names):
        if events.sources[place] != "neuron_hw":
            continue
        near = {row for flow in events.flows[place] for row in by_flow[flow]}
        runtime = {row for row in near if events.sources[row] == "neuron_rt"}
        far = {row for call in runtime for flow in events.flows[call] for row in by_flow[flow]}
        framework = sorted(
            (row for row in near | far if events.sources[row] == "framework"),
            key=lambda row: int(events.start[row]),
        )
        before = [
            row for row in runtime or framework if events.start[row] <= events.start[place] + CLOCK_SLACK_NS
        ]
        if before:
            launch[place] = max(before, key=lambda row: (int(events.start[row]), -int(events.duration[row])))
        ops = list(dict.fromkeys(int(op[row]) for row in framework if op[row] >= 0))
        if not ops and launch[place] >= 0 and op[launch[place]] >= 0:
            ops = [int(op[launch[place]])]
        if name in (EXECUTION, COLLECTIVE):
            executions[events.core[place] or 0].append((place, ops))
        elif ops:
            op[place] = ops[0]
    # Runtime calls belong to the ops that flow into them, too.
    for place, source in enumerate(events.sources):
        if source == "neuron_rt" and op[place] < 0:
            causes = [
                row
                for flow in events.flows[place]
                for row in by_flow[flow]
                if events.sources[row] == "framework"
            ]
            known = [
                int(op[row]) for row in sorted(causes, key=lambda row: int(events.start[row])) if op[row] >= 0
            ]
            if known:
                op[place] = known[0]
    return executions


def _steps(events: SystemEvents) -> list[tuple[int, int, int]]:
    found: dict[int, tuple[int, int, int]] = {}
    for place, category in enumerate(events.categories):
        number = step_of(events.names[place]) if category == "step" else None
        if number is not None:
            start = int(events.start[place])
            found.setdefault(number, (number, start, start + int(events.duration[place])))
    if found:
        return sorted(found.values(), key=lambda step: step[1])
    # A serving engine marks no steps: each of its forward passes is one.
    passes = [place for place, name in enumerate(events.names) if inference_step_of(name) is not None]
    passes.sort(key=lambda place: int(events.start[place]))
    starts = [(int(events.start[place]), int(events.duration[place])) for place in passes]
    return [(number, start, start + duration) for number, (start, duration) in enumerate(starts)]


def _step_of(
    start: np.ndarray[Any, Any], steps: list[tuple[int, int, int]]
) -> np.ndarray[Any, np.dtype[np.int64]]:
    result = np.full(len(start), -1, np.int64)
    for number, begin, end in steps:
        result[(start >= begin) & (start < end)] = number
    return result


def sites_of(linked: Linked, ops: list[int]) -> tuple[tuple[int, float], ...]:
    """Lines of an execution's ops with their shares: equal parts per op, added up per line."""
    shares: dict[int, float] = defaultdict(float)
    known = [chain for chain in (linked.stack[op] for op in ops) if chain is not None]
    for chain in known:
        shares[chain.site_id] += 1.0 / len(known)
    return tuple(shares.items())


def execution_list(events: SystemEvents, linked: Linked, core: int) -> list[Execution]:
    """Executions of one core for `Executions`."""
    found = []
    for row, ops in linked.executions.get(core, []):
        if events.names[row] != EXECUTION:
            continue
        chain = linked.stack[row]
        start = int(events.start[row])
        found.append(
            Execution(
                start,
                start + int(events.duration[row]),
                int(linked.ids[linked.launch[row]]) if linked.launch[row] >= 0 else None,
                tuple(int(linked.ids[op]) for op in ops),
                int(linked.step[row]) if linked.step[row] >= 0 else None,
                sites_of(linked, ops),
                chain.stack_id if chain else None,
            )
        )
    return found


def write_events(
    events: SystemEvents,
    linked: Linked,
    bulk: BulkWriter,
    rank: int,
    profiled: dict[int, list[tuple[int, int]]],
) -> int:
    """Write events, shared lines and launch edges; returns the events written.

    Where a device profile covers an execution (`profiled`: host-time windows by core) the execution as a whole is an
    annotation, since its instructions are the work; elsewhere it is the work itself.
    """
    count = len(events)
    if not count:
        return 0
    ids = linked.ids
    keep = np.flatnonzero(~linked.is_own)
    categories = list(events.categories)
    for place, name in enumerate(events.names):
        if name in (EXECUTION, COLLECTIVE) and events.sources[place] == "neuron_hw":
            start = int(events.start[place])
            middle = start + int(events.duration[place]) // 2
            if any(first <= middle <= last for first, last in profiled.get(events.core[place] or 0, ())):
                categories[place] = "annotation"
    shared: dict[int, tuple[tuple[int, float], ...]] = {}
    for rows in linked.executions.values():
        for row, ops in rows:
            if len(sites := sites_of(linked, ops)) > 1:
                shared[row] = sites
    site: list[int | None] = []
    stack: list[int | None] = []
    attribution: list[str | None] = []
    precision: list[str | None] = []
    for place, chain in enumerate(linked.stack):
        device = events.sources[place] == "neuron_hw"
        best = max(shared[place], key=lambda item: item[1])[0] if place in shared else None
        site.append(best if best is not None else chain.site_id if chain else None)
        stack.append(chain.stack_id if chain else None)
        known = chain is not None
        attribution.append(("flow" if device else "stack") if known else "none" if device else None)
        # A Python row names the line of the function's definition, not the one that was executing; our own capture knows it.
        exact = linked.op[place] >= 0 and bool(linked.is_own[linked.op[place]])
        single = "exact" if exact else "coarse"
        precision.append(None if not known else "shared" if place in shared else single)
    columns: dict[str, Any] = {
        "event_id": ids,
        "parent_id": _ids(linked.parent, ids),
        "track_id": events.track.astype(np.int32),
        "category": pa.array(categories).dictionary_encode(),
        "name": pa.array(events.names).dictionary_encode(),
        "start_ns": events.start,
        "duration_ns": events.duration,
        "self_ns": linked.own,
        "step": pa.array(linked.step, pa.int32(), mask=linked.step < 0),
        "launch_id": _ids(linked.launch, ids),
        "op_id": _ids(np.where(linked.op == np.arange(count), -1, linked.op), ids),
        "site_id": pa.array(site, pa.int64()),
        "stack_id": pa.array(stack, pa.int64()),
        "attribution": pa.array(attribution, pa.string()),
        "precision": pa.array(precision, pa.string()),
        "size_bytes": pa.array([_size(extra) for extra in events.attributes], pa.int64()),
        "attributes": pa.array([json.dumps(extra, default=str) for extra in events.attributes]),
    }
    chosen = pa.array(keep)
    bulk.write(
        "events",
        {n: c[keep] if isinstance(c, np.ndarray) else c.take(chosen) for n, c in columns.items()},
    )
    if shared:
        rows_of = [(int(ids[place]), *item) for place, found in shared.items() for item in found]
        events_, sites_, shares = zip(*rows_of)
        bulk.write(
            "event_sites",
            {
                "event_id": np.array(events_, np.int64),
                "site_id": np.array(sites_, np.int64),
                "role": pa.array(["responsible"] * len(rows_of)),
                "share": np.array(shares, np.float64),
            },
        )
    targets = np.flatnonzero(linked.launch >= 0)
    if len(targets):
        bulk.write(
            "edges",
            {
                "source_id": ids[linked.launch[targets]],
                "target_rank": np.full(len(targets), rank, np.int32),
                "target_id": ids[targets],
                "kind": pa.array(["launch"] * len(targets)),
            },
        )
    return len(keep)


def _ids(places: np.ndarray[Any, Any], ids: np.ndarray[Any, Any]) -> pa.Array:
    """Event numbers of rows; null for -1."""
    return pa.array(ids[np.maximum(places, 0)], pa.int64(), mask=places < 0)


def _size(extra: dict[str, Any]) -> int | None:
    return next((extra[key] for key in _SIZE_KEYS if isinstance(extra.get(key), int)), None)


def _json(text: str | None) -> dict[str, Any]:
    try:
        value = json.loads(text or "{}")
    except ValueError:
        return {"extra_attributes_json": text}
    return value if isinstance(value, dict) else {"extra_attributes_json": text}


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
