"""What is shown of an answer in another tool's definitions: the columns that tool has, in its units."""

from __future__ import annotations

from explorer.cli.table import Column


def _numbers(*names: tuple[str, str]) -> tuple[Column, ...]:
    return tuple(Column(name, title, "rate") for name, title in names)


_RANK = Column("rank", "Rank", "number")

PEER_COLUMNS: dict[tuple[str, str], tuple[Column, ...]] = {
    ("breakdown", "hta"): (
        _RANK,
        *_numbers(("kernel_time_us", "Total (us)"), ("compute_time_us", "Compute (us)")),
        *_numbers(("non_compute_time_us", "Other (us)"), ("idle_time_us", "Idle (us)")),
        *_numbers(("communication_overlap_percent", "Comm. hidden (%)")),
    ),
    ("breakdown", "tracelens"): (
        _RANK,
        *_numbers(("total_time_ms", "Total (ms)"), ("computation_time_ms", "Compute (ms)")),
        *_numbers(
            ("exposed_comm_time_ms", "Exposed comm. (ms)"), ("exposed_memcpy_time_ms", "Exposed copies (ms)")
        ),
        *_numbers(("busy_time_ms", "Busy (ms)"), ("idle_time_ms", "Idle (ms)")),
    ),
    ("kernels", "hta"): (
        Column("rank", "Rank", "number", priority=1),
        *_numbers(("total_us", "Total (us)")),
        Column("calls", "Calls", "number"),
        *_numbers(("mean_us", "Mean (us)"), ("min_us", "Shortest (us)"), ("max_us", "Longest (us)")),
        Column("kernel_type", "Kind", priority=1),
        Column("name", "Name", flexible=True, style="cyan"),
    ),
    ("kernels", "tracelens"): (
        Column("rank", "Rank", "number", priority=1),
        *_numbers(("sum_us", "Total (us)")),
        Column("count", "Calls", "number"),
        *_numbers(("mean_us", "Mean (us)"), ("min_us", "Shortest (us)"), ("max_us", "Longest (us)")),
        Column("name", "Name", flexible=True, style="cyan"),
    ),
    ("gaps", "hta"): (
        _RANK,
        Column("stream", "Stream", "raw"),
        Column("idle_category", "Category"),
        Column("gaps", "Gaps", "number"),
        *_numbers(("idle_time_us", "Idle (us)")),
    ),
    ("launches", "hta"): (
        Column("rank", "Rank", "number", priority=2),
        *_numbers(
            ("launch_delay_us", "Delay (us)"),
            ("cpu_duration_us", "Call (us)"),
            ("gpu_duration_us", "Kernel (us)"),
        ),
        Column("event_id", "Event", "raw", priority=1),
        Column("name", "Name", flexible=True, style="cyan"),
    ),
    ("queue", "hta"): (
        _RANK,
        Column("stream", "Stream", "raw"),
        Column("changes", "Changes", "number"),
        *_numbers(("mean", "Mean"), ("median", "Median"), ("max", "Most")),
    ),
}
"""By answer and mode; a pair that is not here is refused by the analysis with the modes there are."""
