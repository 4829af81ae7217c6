"""Computed tables over Neuron device profiles: columns, and the module that makes each."""

from __future__ import annotations

from explorer.model.schema import Column, Table

_PLACE = (
    Column("rank", "int32", "Process rank"),
    Column("profile", "string", "Name of the device profile"),
    Column("device", "string", "Logical core as a device, neuron:0"),
    Column("core", "int32", "Physical core within the logical one"),
)

NEURON_BUSY = Table(
    "neuron_busy",
    "When each engine, DMA mode, spill traffic, collectives and throttling were busy: intervals of one lane never overlap.",
    (
        *_PLACE,
        Column(
            "lane",
            "string",
            "Tensor, Vector, Scalar, GpSimd, Sync, dma (all modes), dma_static, dma_software_dynamic,"
            " dma_hardware_dynamic, spill, collective, throttle",
        ),
        Column("start_ns", "int64", "Start", unit="ns"),
        Column("duration_ns", "int64", "Length", unit="ns"),
    ),
    sort_by=("start_ns",),
)

NEURON_LANE_TIME = Table(
    "neuron_lane_time",
    "How long each lane of each core was busy in all, overlaps counted once: the sums of neuron_busy.",
    (
        *_PLACE,
        Column("lane", "string", "As in neuron_busy"),
        Column("busy_ns", "int64", "Time the lane was busy", unit="ns"),
        Column("intervals", "int64", "Stretches without a break", unit="count"),
        Column("start_ns", "int64", "Start of the first", unit="ns"),
        Column("end_ns", "int64", "End of the last", unit="ns"),
    ),
)

NEURON_OVERLAP = Table(
    "neuron_overlap",
    "How long each combination of lanes was busy at once; the rows of one core sum to its profile's length."
    " Core -1 is all physical cores together: a lane is busy while it is on any of them.",
    (
        *_PLACE,
        *(
            Column(name, "bool", f"{name} was busy")
            for name in ("tensor", "vector", "scalar", "gpsimd", "dma", "collective", "throttle")
        ),
        Column("duration_ns", "int64", "Time with exactly this combination", unit="ns"),
    ),
)

NEURON_IDLE = Table(
    "neuron_idle",
    "Gaps of the compute engines with what ended each: the wait of the first instruction behind it.",
    (
        *_PLACE,
        Column("engine", "string", "Tensor, Vector, Scalar or GpSimd"),
        Column("start_ns", "int64", "Start of the gap", unit="ns"),
        Column("duration_ns", "int64", "Length of the gap", unit="ns"),
        Column(
            "cause",
            "string",
            "dma, input, spill, engine, collective; short (under 100 ns), start and end of the profile, unknown",
        ),
        Column("blocker", "string", "Queue or engine that was waited for", nullable=True),
        Column(
            "method",
            "string",
            "flow (a recorded dependency), semaphore (an update naming it), coincidence (ended last before), none",
        ),
        Column("event_id", "int64", "First instruction behind the gap (events)", nullable=True),
    ),
    sort_by=("start_ns",),
)

NEURON_EXPOSED = Table(
    "neuron_exposed",
    "When no compute engine of a core worked, and what went on meanwhile. Core -1 is all physical cores together.",
    (
        *_PLACE,
        Column("kind", "string", "collective, dma (and no collective), or idle (neither)"),
        Column("start_ns", "int64", "Start", unit="ns"),
        Column("duration_ns", "int64", "Length", unit="ns"),
    ),
    sort_by=("start_ns",),
)

_BOUNDS = (
    Column("instructions", "float64", "Instructions; shared ones in part", unit="count"),
    Column("start_ns", "int64", "First start of an instruction or transfer of its own", unit="ns"),
    Column("end_ns", "int64", "Last end", unit="ns"),
    Column("active_ns", "int64", "Time with any of its instructions or transfers under way", unit="ns"),
    Column("memory_ns", "int64", "Memory bound: time with one of its transfers under way", unit="ns"),
    Column(
        "memory_ideal_ns",
        "int64",
        "Its bytes at full DMA bandwidth (packets over 4 bytes, instruction fetches left out); a transfer of several is shared",
        nullable=True,
        unit="ns",
    ),
    Column(
        "memory_no_reload_ns",
        "int64",
        "Each input and output tensor that it moves, once, at full DMA bandwidth",
        nullable=True,
        unit="ns",
    ),
    Column("compute_ns", "int64", "Compute bound: time with the Tensor engine at work for it", unit="ns"),
    Column(
        "compute_ideal_ns", "int64", "Its matrix work at the Tensor engine's peak", nullable=True, unit="ns"
    ),
    Column("compute_useful_ns", "int64", "That without transposes", nullable=True, unit="ns"),
    Column("pipeline_ns", "int64", "Perfect pipeline: the busiest engine alone", unit="ns"),
    Column("busiest_engine", "string", "Which engine that is", nullable=True),
    Column("bound", "string", "memory, compute or the busiest other engine: the largest of the bounds"),
    Column("bound_ns", "int64", "That bound", unit="ns"),
    Column(
        "speedup_limit",
        "float64",
        "active_ns over bound_ns: what perfect overlap within it would give",
        nullable=True,
    ),
)

NEURON_REGION_BOUNDS = Table(
    "neuron_region_bounds",
    "The bounds model for each region of a profile: memory, compute, useful compute, perfect pipeline. Its transfers are those that"
    " feed or drain its instructions.",
    (
        *_PLACE,
        Column(
            "kind",
            "string",
            "layer (path in the module tree) or framework (operator of the framework's graph)",
        ),
        Column("region", "string", "The layer's path, or the operator's name"),
        *_BOUNDS,
    ),
)

NEURON_SITE_BOUNDS = Table(
    "neuron_site_bounds",
    "The bounds model for each source line of a profile, by site_id: neuron_line_bounds shows it with file and line.",
    (*_PLACE, Column("site_id", "int64", "Source line"), *_BOUNDS),
)

NEURON_COMPUTED: dict[str, tuple[Table, str]] = {
    "neuron_busy": (NEURON_BUSY, "explorer.analysis.neuron.lanes"),
    "neuron_lane_time": (NEURON_LANE_TIME, "explorer.analysis.neuron.lane_time"),
    "neuron_overlap": (NEURON_OVERLAP, "explorer.analysis.neuron.overlap"),
    "neuron_exposed": (NEURON_EXPOSED, "explorer.analysis.neuron.exposed"),
    "neuron_idle": (NEURON_IDLE, "explorer.analysis.neuron.idle"),
    "neuron_region_bounds": (NEURON_REGION_BOUNDS, "explorer.analysis.neuron.region_bounds"),
    "neuron_site_bounds": (NEURON_SITE_BOUNDS, "explorer.analysis.neuron.line_bounds"),
}
