"""Every table of a run, schema version 1: the public contract of the format.

All times are int64 nanoseconds on the run's clock (Unix epoch where the source knew it).
"""

from __future__ import annotations

from explorer.model.schema import Column, Table

_RANK = Column("rank", "int32", "Process rank; 0 for one process")
_TRACK = Column("track_id", "int32", "The track it happened on (tracks, same rank)")
_START = Column("start_ns", "int64", "Start time", unit="ns")
_DURATION = Column("duration_ns", "int64", "Duration, never negative", unit="ns")
_EVENT = Column("event_id", "int64", "The event (events, same rank)")


def _ref(name: str, doc: str) -> Column:
    return Column(name, "int64", doc, nullable=True)


def _text(name: str, doc: str) -> Column:
    return Column(name, "string", doc, nullable=True)


EVENTS = Table(
    "events",
    "One row per activity on one track: ops, kernels, copies, runtime calls, annotations, steps, waits.",
    (
        _RANK,
        Column("event_id", "int64", "Identity within the rank; written '<rank>:<event_id>' in JSON and text"),
        _ref("parent_id", "Enclosing event on the same track"),
        _TRACK,
        Column("category", "string", "What kind of activity (docs/words.md)"),
        Column("name", "string", "Name as recorded by the source"),
        _START,
        _DURATION,
        Column("self_ns", "int64", "Duration minus the events it encloses on the same track", unit="ns"),
        Column("step", "int32", "Training or inference step it belongs to", nullable=True),
        _text("phase", "forward, backward, optimizer, data, evaluation, prefill, decode or other"),
        _ref("correlation_id", "Correlation id as the source gave it"),
        _ref("launch_id", "Device event: the host event that enqueued it"),
        _ref("op_id", "Innermost framework op responsible for it"),
        _ref("forward_id", "Backward op: the forward op it differentiates"),
        _ref("site_id", "Responsible source line (sites); of several, the one with the largest share"),
        _ref("stack_id", "User call chain that was executing (stacks)"),
        _text(
            "attribution",
            "How the line is known: traced, flow, forward, compiled, graph_replay, debug_info, stack, module, order, none",
        ),
        _text("precision", "exact, shared (several lines), coarse (function level) or inferred"),
        _ref("module_id", "nn.Module it ran in (modules)"),
        Column("flops", "int64", "Floating point operations of this event", nullable=True, unit="flop"),
        Column("size_bytes", "int64", "Bytes moved by this event", nullable=True, unit="bytes"),
        _text("shapes", "JSON list of input shapes as recorded"),
        _text("dtypes", "JSON list of input dtypes as recorded"),
        _text("attributes", "JSON object with every other field of the source row"),
    ),
    identity=("rank", "event_id"),
    sort_by=("start_ns", "event_id"),
)

EVENT_SITES = Table(
    "event_sites",
    "Further source lines of an event that has more than one; shares of role 'responsible' sum to 1 per event.",
    (
        _RANK,
        _EVENT,
        Column("site_id", "int64", "The source line (sites)"),
        Column("role", "string", "responsible, executing or recomputed"),
        Column("share", "float64", "Part of the event's cost that is charged to this line, 0 to 1"),
    ),
)

HOST_STATES = Table(
    "host_states",
    "What user code each thread was executing, op or no op: the basis of Python time, gaps and blame.",
    (
        _RANK,
        _TRACK,
        _START,
        _DURATION,
        _ref("stack_id", "User call chain (stacks); null: no user frame"),
        _ref("site_id", "Innermost user line (sites)"),
        Column(
            "line_records",
            "int64",
            "Lines that the recorder noted in this state: passes of a loop on one line make one state of many",
            nullable=True,
        ),
        Column(
            "skipped_calls",
            "int64",
            "Calls of code that is not the user's, which the line recorder looked at and let go: each cost time",
            nullable=True,
        ),
        Column("module_calls", "float64", "Calls of nn.Modules that were recorded meanwhile", nullable=True),
        Column(
            "module_python_ns",
            "int64",
            "Part of it outside ops that nn.Modules without lines of their own took (a library's)",
            unit="ns",
            nullable=True,
        ),
    ),
    sort_by=("track_id", "start_ns"),
)

EDGES = Table(
    "edges",
    "Dependencies and flows between events; source numbers are resolved at import, never stored as keys.",
    (
        _RANK,
        Column("source_id", "int64", "The event that comes first"),
        Column("target_rank", "int32", "Rank of the target event"),
        Column("target_id", "int64", "The event that depends on it"),
        Column(
            "kind",
            "string",
            "launch, forward_backward, flow, stream_wait, event_wait, sync, semaphore, data or collective",
        ),
    ),
)

TRACKS = Table(
    "tracks",
    "Where events happen: host threads, device streams, engines, queues, counters.",
    (
        _RANK,
        Column("track_id", "int32", "Identity within the rank"),
        Column("kind", "string", "thread, stream, engine, queue or counter"),
        _text("device_type", "cpu, cuda, hip, xpu, mtia, npu, neuron, tpu ...; cpu for host threads"),
        Column("device_index", "int32", "Device number", nullable=True),
        _ref("process_id", "Process id as the source gave it, where it is a number"),
        _text("process_name", "Process name or label"),
        _ref("thread_id", "Native thread id or stream number, where it is a number"),
        _text("thread_name", "Thread, stream or engine name"),
        Column("label", "string", "Short text for screens"),
    ),
    identity=("rank", "track_id"),
    sort_by=("track_id",),
)

SITES = Table(
    "sites",
    "Source lines.",
    (
        Column("site_id", "int64", "53-bit hash of file, line, end line and function"),
        Column("file", "string", "Path relative to the project or package root"),
        Column("line", "int32", "First line, from 1; 0 where only the function is known"),
        Column("end_line", "int32", "Last line of a statement over several lines", nullable=True),
        Column("function", "string", "Qualified function name"),
        _text("code", "Source text of the line, stripped"),
        Column("is_user", "bool", "User code (not torch, the standard library or site-packages)"),
    ),
    identity=("site_id",),
    sort_by=("file", "line"),
    dimension=True,
)

STACKS = Table(
    "stacks",
    "User call chains: one row per frame, innermost first.",
    (
        Column("stack_id", "int64", "53-bit hash of the chain of site ids"),
        Column("depth", "int32", "0 for the innermost frame"),
        Column("site_id", "int64", "Line being executed in this frame (sites)"),
    ),
    identity=("stack_id", "depth"),
    sort_by=("stack_id", "depth"),
    dimension=True,
)

MODULES = Table(
    "modules",
    "nn.Module instances of the model.",
    (
        Column("module_id", "int64", "53-bit hash of path and class name"),
        Column("path", "string", "Dotted path from the root module; empty for the root"),
        Column("class_name", "string", "Class of the module"),
        _ref("parent_id", "Enclosing module (modules)"),
    ),
    identity=("module_id",),
    sort_by=("path",),
    dimension=True,
)

STEPS = Table(
    "steps",
    "Training or inference steps, as cut by the capture or found in the source; capture pauses are cut out.",
    (
        _RANK,
        Column("step", "int32", "Step number"),
        _START,
        _DURATION,
        Column("complete", "bool", "False for a step cut by the edge of the capture; left out of averages"),
        _text("phase", "train, evaluation, prefill, decode, or null"),
        Column("window", "int32", "Capture window it belongs to", nullable=True),
        Column(
            "pause_ns", "int64", "Capture pauses inside the step, already cut out", nullable=True, unit="ns"
        ),
    ),
    identity=("rank", "step", "start_ns"),
    sort_by=("start_ns",),
)

COUNTERS = Table(
    "counters",
    "Values over time: telemetry, queue depth, memory, utilisation.",
    (
        _RANK,
        _TRACK,
        Column("timestamp_ns", "int64", "When it was sampled", unit="ns"),
        Column("name", "string", "Counter name"),
        Column("value", "float64", "Sampled value", nullable=True),
        _text("unit", "Unit of the value: bytes, percent, celsius, watt, hertz, count ..."),
    ),
    sort_by=("track_id", "timestamp_ns"),
)

COLLECTIVES = Table(
    "collectives",
    "Communication calls and kernels with what they moved.",
    (
        _RANK,
        _EVENT,
        Column("side", "string", "host or device"),
        _text("group", "Process group name"),
        _text("group_description", "What the group is for, as the program named it"),
        Column(
            "operation",
            "string",
            "all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, send, recv ...",
        ),
        _text("dtype", "Element type"),
        Column("element_count", "int64", "Elements sent per rank", nullable=True),
        Column(
            "size_bytes",
            "int64",
            "Message size in the peers' convention (output for all-gather, else input)",
            nullable=True,
            unit="bytes",
        ),
        Column("group_size", "int32", "Ranks in the group", nullable=True),
        _text("group_ranks", "JSON list of the ranks in the group"),
        Column("sequence", "int64", "Sequence number within the group", nullable=True),
        Column("peer", "int32", "Other rank of a point-to-point call", nullable=True),
    ),
    identity=("rank", "event_id"),
)

MEMORY_EVENTS = Table(
    "memory_events",
    "Allocations and frees of device or host memory.",
    (
        _RANK,
        _EVENT,
        Column("timestamp_ns", "int64", "When it happened", unit="ns"),
        Column(
            "action",
            "string",
            "alloc, free, free_requested (size 0: the free follows), segment_alloc, segment_free, segment_map, segment_unmap, oom, snapshot",
        ),
        _ref("address", "Address as the source gave it"),
        Column("size_bytes", "int64", "Bytes allocated (positive) or freed (negative)", unit="bytes"),
        Column("allocated_bytes", "int64", "Total allocated afterwards", nullable=True, unit="bytes"),
        Column("reserved_bytes", "int64", "Total reserved afterwards", nullable=True, unit="bytes"),
        Column("device", "string", "cpu, cuda:0, neuron:0 ..."),
        _ref("op_id", "Op during which it happened (events)"),
        _ref("site_id", "Responsible source line (sites)"),
        _ref("stack_id", "Call chain of the allocation (stacks)"),
        _text("category", "parameter, gradient, activation, optimizer_state, temporary, input or unknown"),
        Column("step", "int32", "Step it happened in", nullable=True),
        _text("attributes", "JSON object with every other field of the source row"),
    ),
    sort_by=("timestamp_ns", "event_id"),
)

DEVICES = Table(
    "devices",
    "The devices of the run with their peaks.",
    (
        _RANK,
        Column("device", "string", "cpu, cuda:0, neuron:0 ..."),
        Column("name", "string", "Model name as reported"),
        _text("vendor", "nvidia, amd, intel, aws, huawei, meta, google, cpu"),
        _text("peak_flops", "JSON object: peak operations per second by dtype"),
        Column("memory_bandwidth", "float64", "Peak memory bandwidth", nullable=True, unit="bytes/s"),
        Column("memory_bytes", "int64", "Memory size", nullable=True, unit="bytes"),
        Column("unit_count", "int32", "Multiprocessors, compute units or cores", nullable=True),
        _text("attributes", "JSON object with every other property the source gave"),
    ),
    identity=("rank", "device"),
)

SOURCES = Table(
    "sources",
    "The user's source as it ran.",
    (
        Column("file", "string", "Path as in sites"),
        Column("sha256", "string", "Hash of the text"),
        Column("text", "string", "Whole file"),
    ),
    identity=("file", "sha256"),
    sort_by=("file",),
    dimension=True,
)

HEALTH = Table(
    "health",
    "What is missing, broken, repaired or doubtful in this run.",
    (
        _RANK,
        Column(
            "kind",
            "string",
            "Short name, stable: dropped_rows, unlinked_kernels, no_shapes, not_captured ...",
        ),
        Column("severity", "string", "info, warning or error"),
        Column("count", "int64", "How many rows or events are affected"),
        Column("message", "string", "One sentence: what happened and why"),
        _text("remedy", "One sentence: what to do"),
        _text("affects", "Comma-separated names of answers that are less certain for it"),
    ),
)

QUARANTINE = Table(
    "quarantine",
    "Rows of the source that could not become events, as text.",
    (
        _RANK,
        Column("row", "string", "The source row as text"),
        Column("reason", "string", "Short name of the reason"),
        Column("offset", "int64", "Byte offset in the (uncompressed) source", nullable=True, unit="bytes"),
    ),
)

SOURCE_ROWS = Table(
    "source_rows",
    "Source rows that are neither events, counters nor memory: metadata, flow halves, context objects. Kept whole.",
    (
        _RANK,
        Column(
            "kind",
            "string",
            "metadata, flow_start, flow_step, flow_end, object, sample, or the source's own letter",
        ),
        Column("name", "string", "Name as recorded"),
        Column("track_id", "int32", "Track it was recorded on", nullable=True),
        Column("timestamp_ns", "int64", "When, where the row has a time", nullable=True, unit="ns"),
        _text("key", "Id as the source gave it (flow number, object id)"),
        _text("category", "Category as the source gave it"),
        _text("attributes", "JSON object with every other field"),
    ),
)

TABLES: dict[str, Table] = {
    table.name: table
    for table in (
        EVENTS,
        EVENT_SITES,
        HOST_STATES,
        EDGES,
        TRACKS,
        SITES,
        STACKS,
        MODULES,
        STEPS,
        COUNTERS,
        COLLECTIVES,
        MEMORY_EVENTS,
        DEVICES,
        SOURCES,
        HEALTH,
        QUARANTINE,
        SOURCE_ROWS,
    )
}
"""Every table by name. Neuron device profiles add `neuron/<Table>` with their official columns."""
