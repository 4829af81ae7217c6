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

NEURON_COMPUTED: dict[str, tuple[Table, str]] = {
    "neuron_busy": (NEURON_BUSY, "explorer.analysis.neuron.lanes"),
    "neuron_lane_time": (NEURON_LANE_TIME, "explorer.analysis.neuron.lane_time"),
    "neuron_overlap": (NEURON_OVERLAP, "explorer.analysis.neuron.overlap"),
    "neuron_exposed": (NEURON_EXPOSED, "explorer.analysis.neuron.exposed"),
    "neuron_idle": (NEURON_IDLE, "explorer.analysis.neuron.idle"),
}
