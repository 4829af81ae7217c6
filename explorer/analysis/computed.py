"""Tables that SQL cannot make at scale: computed in code when a statement first names them, then read like any table."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from explorer.analysis.capture_windows import CAPTURE_WINDOWS
from explorer.analysis.device_peaks import DEVICE_PEAKS
from explorer.analysis.device_time import DEVICE_TIME
from explorer.analysis.gap_blame import GAP_BLAME
from explorer.analysis.host_segments import HOST_SEGMENTS
from explorer.analysis.host_time import HOST_TIME
from explorer.analysis.idle_gaps import IDLE_GAPS
from explorer.analysis.kernel_sequences import KERNEL_SEQUENCES
from explorer.analysis.line_states import LINE_STATES
from explorer.analysis.neuron.computed_tables import NEURON_COMPUTED
from explorer.analysis.op_work import OP_WORK
from explorer.analysis.rank_info import RANK_INFO
from explorer.analysis.rollup import ROLLUPS, load, table_of
from explorer.model.schema import Column, Table

if TYPE_CHECKING:
    import pyarrow as pa

    from explorer.analysis.engine import Engine

CRITICAL_PATH = Table(
    "critical_path",
    "The critical path of each rank, piece by piece: between the first and the last step every moment belongs to exactly"
    " one piece, so that the pieces of a step add up to its wall time.",
    (
        Column("rank", "int32", "Process rank"),
        Column("step", "int32", "Step the piece lies in; null between steps", nullable=True),
        Column("start_ns", "int64", "Start of the piece", unit="ns"),
        Column("duration_ns", "int64", "Length of the piece", unit="ns"),
        Column(
            "kind",
            "string",
            "Category of the event that was running, or python, idle (host, nothing known), launch_latency, device_gap",
        ),
        Column("event_id", "int64", "The event that was running", nullable=True),
        Column("site_id", "int64", "Responsible source line", nullable=True),
    ),
    sort_by=("start_ns",),
)

SLACK = Table(
    "slack",
    "How much later each event could have ended with the last step still ending when it did: device work and what the"
    " driving thread ran. Work on the critical path has none; making work with slack faster does not shorten a step.",
    (
        Column("rank", "int32", "Process rank"),
        Column("step", "int32", "Step the event begins in; null between steps", nullable=True),
        Column("event_id", "int64", "The event"),
        Column("start_ns", "int64", "Its start", unit="ns"),
        Column("duration_ns", "int64", "Its duration", unit="ns"),
        Column("on_device", "bool", "Whether it ran on a device"),
        Column(
            "slack_ns",
            "int64",
            "How much later it could have ended; 0: on the critical path; null: nothing before the end waited for it",
            nullable=True,
            unit="ns",
        ),
    ),
    sort_by=("start_ns",),
)

JOB_PATH = Table(
    "job_path",
    "The critical path of a job through its ranks, in time aligned to the reference rank's clock; its pieces touch and cover"
    " the job from its first step to its last.",
    (
        Column("rank", "int32", "The rank the job was waiting for"),
        Column(
            "kind",
            "string",
            "own (the rank's own work) or transfer (the call through which the path reached the next rank)",
        ),
        Column("start_ns", "int64", "Start, aligned", unit="ns"),
        Column("duration_ns", "int64", "Length", unit="ns"),
        Column("match_id", "int64", "The call of a transfer (collectives_matched)", nullable=True),
        Column("site_id", "int64", "Line of the call", nullable=True),
    ),
)

RANK_CLOCKS = Table(
    "rank_clocks",
    "The clock of each rank against the reference rank's, estimated from the ends of communication that all its ranks end"
    " together. Aligned time = time - offset_ns - drift_ppb * (time - reference_ns) / 1e9.",
    (
        Column("rank", "int32", "Process rank"),
        Column("host", "string", "Host it ran on; its ranks share a clock"),
        Column("reference_rank", "int32", "The rank whose clock is taken as true"),
        Column("offset_ns", "float64", "How far this clock was ahead at reference_ns", unit="ns"),
        Column("drift_ppb", "float64", "How much faster it runs, in parts per 10^9"),
        Column("reference_ns", "int64", "The time the offset holds for, on this rank's clock", unit="ns"),
        Column(
            "residual_ns",
            "float64",
            "Spread of the matched ends around the estimate (1.4826 times the median absolute deviation, at least the step of"
            " the clock); no statement across ranks is finer. Null: this rank shares neither such"
            " communication nor a host with the others",
            nullable=True,
            unit="ns",
        ),
        Column("matched", "int64", "Matched ends the estimate rests on"),
    ),
)

COMPUTED: dict[str, tuple[Table, str]] = {
    "critical_path": (CRITICAL_PATH, "explorer.analysis.critical_path.compute"),
    "slack": (SLACK, "explorer.analysis.critical_path.slack"),
    "rank_info": (RANK_INFO, "explorer.analysis.rank_info"),
    "device_peaks": (DEVICE_PEAKS, "explorer.analysis.device_peaks"),
    "kernel_sequences": (KERNEL_SEQUENCES, "explorer.analysis.kernel_sequences"),
    "op_work": (OP_WORK, "explorer.analysis.op_work"),
    "capture_windows": (CAPTURE_WINDOWS, "explorer.analysis.capture_windows"),
    "device_time": (DEVICE_TIME, "explorer.analysis.device_time"),
    "gap_blame": (GAP_BLAME, "explorer.analysis.gap_blame"),
    "host_segments": (HOST_SEGMENTS, "explorer.analysis.host_segments"),
    "host_time": (HOST_TIME, "explorer.analysis.host_time"),
    "idle_gaps": (IDLE_GAPS, "explorer.analysis.idle_gaps"),
    "line_states": (LINE_STATES, "explorer.analysis.line_states"),
    "job_path": (JOB_PATH, "explorer.analysis.ranks.job_path"),
    "rank_clocks": (RANK_CLOCKS, "explorer.analysis.ranks.clocks"),
    **{name: (table_of(name), "explorer.analysis.rollup") for name in ROLLUPS},
    **NEURON_COMPUTED,
}
"""Computed tables by name: their columns, and the module whose `compute(engine)` makes them."""


def compute(name: str, engine: Engine) -> pa.Table:
    """Make a computed table, brought to its documented columns."""
    spec, module = COMPUTED[name]
    if name in ROLLUPS:
        table: pa.Table = load(engine, name)
    else:
        table = import_module(module).compute(engine).select(list(spec.names))
    schema = spec.arrow_schema()
    for place, field in enumerate(table.schema):
        # Dictionary-encoded strings stay so: millions of rows name a handful of lanes.
        if str(field.type).startswith("dictionary<values=string"):
            schema = schema.set(place, schema.field(place).with_type(field.type))
    if table.schema.types == schema.types:
        # A cast loads all of Arrow's computing.
        return table.from_arrays(table.columns, schema=schema)
    return table.cast(schema)
