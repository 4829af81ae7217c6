"""What a reader of the run must know about the trace: gaps, repairs, losses, missing facts."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from explorer.collectors.kineto.collecting import REASONS, Collected
from explorer.collectors.kineto.lines import Lines
from explorer.collectors.kineto.linking import Links
from explorer.collectors.kineto.rank import as_rank
from explorer.collectors.kineto.splitter import TraceText
from explorer.store.writer import RunWriter


def tell_source(text: TraceText, found: Collected, writer: RunWriter) -> None:
    """Fill the manifest's losses, repairs and attributes, and say what was damaged."""
    manifest = writer.manifest
    count, offset = text.repeated
    if count:
        manifest.repairs.append({"kind": "repeated_name", "count": count, "first_offset": offset})
        writer.health(
            "repeated_names",
            "warning",
            count,
            f"{count} rows have a name twice in one object (the first at byte {offset:,}): the last value counts, as in "
            "Python's json; earlier ones are in the attributes (repeated_names).",
        )
    manifest.attributes["top_level"] = json.loads(json.dumps(text.top_level, default=str))
    manifest.attributes["clock"] = found.clock.kind
    world = text.top_level.get("distributedInfo")
    if isinstance(world, dict):
        if isinstance(world.get("world_size"), int):
            manifest.world_size = world["world_size"]
        _rank(world.get("rank"), writer)
    tell_damage(text, writer)


def _rank(said: Any, writer: RunWriter) -> None:
    """Say where the rank that the trace says is not the one it is counted as."""
    rank = as_rank(said)
    if said is None or rank == writer.rank:
        return
    what = "is no rank" if rank is None else "is not used"
    writer.health(
        "rank_not_used",
        "warning" if rank is None else "info",
        1,
        f"The rank that the trace says ({json.dumps(said, default=str)[:40]}) {what}: it is counted as rank {writer.rank}.",
        "Name the rank with --rank.",
        "ranks",
    )


def tell_damage(text: TraceText, writer: RunWriter) -> None:
    """Fill the manifest's losses and repairs, and say what of the text was damaged or mended."""
    for lost in text.lost:
        writer.quarantine(lost.text.decode("utf-8", "replace"), lost.reason, lost.offset)
        writer.manifest.losses.append(
            {"offset": lost.offset, "size_bytes": len(lost.text), "reason": lost.reason}
        )
    counts = writer.manifest.counts
    counts["unreadable"] = counts.get("unreadable", 0) + len(text.lost)
    for kind, count in sorted(text.repairs.items()):
        writer.manifest.repairs.append({"kind": kind, "count": count, "first_offset": text.first_repair})
    if text.damage:
        writer.health(
            "damaged_container", "error", 1, f"The file is damaged: {text.damage}. What came before was read."
        )
        writer.manifest.losses.append(
            {"offset": text.bytes_read, "size_bytes": None, "reason": "damaged_container"}
        )
    if not text.closed and text.container == "object":
        writer.health(
            "truncated",
            "error",
            1,
            f"The trace ends early, after {text.bytes_read:,} bytes: its list of events is not closed.",
            "Copy the file again, or let the profiler finish writing.",
            "steps, breakdown",
        )
        if not text.lost:
            writer.manifest.losses.append(
                {"offset": text.bytes_read, "size_bytes": None, "reason": "truncated"}
            )
    elif not text.closed:
        writer.health(
            "unclosed_array",
            "info",
            1,
            "The list of events is not closed, which the format allows; it may also be cut off.",
        )
    if text.lost:
        first = text.lost[0]
        writer.health(
            "unreadable_text",
            "error",
            len(text.lost),
            f"{len(text.lost)} stretches of the file could not be read (the first at byte {first.offset:,}); they are in quarantine.",
        )
    for kind, count in sorted(text.repairs.items()):
        writer.health(
            "repaired_text",
            "warning",
            count,
            f"{count} places were repaired: {kind.replace('_', ' ')} (first repair at byte {text.first_repair or 0:,}).",
        )


def tell_events(found: Collected, links: Links, lines: Lines, writer: RunWriter) -> None:
    """Say what the events lack: rows in quarantine, unknown time, missing launches, missing lines."""
    events = found.events
    counts = np.bincount(found.refused.why, minlength=len(REASONS)).tolist()
    for reason, count in sorted((reason, count) for reason, count in zip(REASONS, counts) if count):
        writer.health(
            "quarantined_rows",
            "warning",
            count,
            f"{count} rows could not become events: {reason.replace('_', ' ')}.",
        )
    if found.unread_durations:
        writer.manifest.repairs.append(
            {"kind": "unreadable_duration", "count": found.unread_durations, "first_offset": None}
        )
        writer.health(
            "unreadable_durations",
            "warning",
            found.unread_durations,
            f"{found.unread_durations} events have a duration that is no number; it counts as 0 ns, and its text is in the "
            "attributes.",
            None,
            "ops, kernels, breakdown",
        )
    if found.without_duration:
        writer.health(
            "no_duration",
            "warning",
            found.without_duration,
            f"{found.without_duration} complete events do not say how long they lasted; they count as 0 ns.",
            None,
            "ops, kernels, breakdown",
        )
    if len(found.unfinished):
        writer.health(
            "unfinished_events",
            "warning",
            len(found.unfinished),
            "Events begun and never ended are taken to last until the end of the trace.",
        )
    if found.clock.kind == "relative" and len(events.start):
        writer.health(
            "no_absolute_time",
            "info",
            1,
            "The trace does not say when it was recorded (no baseTimeNanoseconds): times are relative to an unknown instant.",
            None,
            "ranks, telemetry",
        )
    if links.steps_inferred:
        writer.health(
            "steps_inferred",
            "info",
            len(links.steps),
            "The trace marks no steps; they are taken to end where the optimizer has stepped, the first and last cut.",
            "Call prof.step() after each step, or record with neuron-explorer record.",
            "steps, breakdown",
        )
    device = events.on_device & events.category_in("kernel", "copy", "fill", "collective")
    total = int(device.sum())
    unlinked = int((device & (links.launch < 0)).sum())
    if unlinked:
        writer.health(
            "unlinked_kernels",
            "warning" if unlinked > 0.05 * total else "info",
            unlinked,
            f"{unlinked} of {total} device events have no launch in the trace.",
            "Profile whole steps; work enqueued before the profiler started has no launch.",
            "lines, launches",
        )
    calls = np.zeros(len(events.start), bool)
    calls[events.correlation.row] = True
    calls &= ~events.on_device & events.category_in("runtime")
    if total and calls.any():
        named = (
            np.array([("aunch" in name and "Kernel" in name) for name in events.names], bool)[events.name]
            & calls
        )
        used = np.zeros(len(events.start), bool)
        used[links.launch[links.launch >= 0]] = True
        idle = int((named & ~used).sum())
        if idle:
            writer.health(
                "launches_without_kernel",
                "info",
                idle,
                f"{idle} kernel launches have no device event: the profiler stopped first, or lost records.",
                None,
                "kernels",
            )
    if len(events.start) and not (lines.site > 0).any():
        writer.health(
            "no_lines",
            "info",
            1,
            "The trace holds no Python stacks, so nothing can be charged to source lines.",
            "Record with neuron-explorer record, or with_stack=True.",
            "lines",
        )
