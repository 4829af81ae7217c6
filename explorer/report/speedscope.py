"""Time by user call chain, as a speedscope file or as folded stacks (one line a chain, for flame graph tools)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from explorer.analysis.trace_rows import stack_frames, stack_rows, track_rows

if TYPE_CHECKING:
    from explorer.analysis.run import Run

SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def speedscope_document(run: Run, *, device: bool = False) -> dict[str, Any]:
    """One sampled profile per rank and thread; a sample's weight is the time in its chain, in nanoseconds.

    `device` weighs chains by the device work they enqueued instead of their own time.
    """
    frames = stack_frames(run)
    labels = {(row["rank"], row["track_id"]): row["label"] for row in track_rows(run)}
    numbers: dict[int, int] = {}
    shared: list[dict[str, Any]] = []
    profiles: dict[tuple[int, int], dict[str, Any]] = {}
    for row in stack_rows(run, device=device):
        chain = frames.get(row["stack_id"])
        if not chain:
            continue
        sample = []
        for frame in chain:
            number = numbers.get(frame["site_id"])
            if number is None:
                number = numbers[frame["site_id"]] = len(shared)
                # speedscope joins frames of one name, file and line: the name holds the line's code.
                shared.append({"name": frame_label(frame), "file": frame["file"], "line": frame["line"]})
            sample.append(number)
        key = (row["rank"], row["track_id"])
        profile = profiles.setdefault(key, _profile(run, key, labels))
        profile["samples"].append(sample)
        profile["weights"].append(row["duration_ns"])
        profile["endValue"] += row["duration_ns"]
    return {
        "$schema": SCHEMA,
        "name": f"{run.directory} ({'device time' if device else 'thread time'} by user line)",
        "exporter": "neuron-explorer",
        "activeProfileIndex": 0,
        "shared": {"frames": shared},
        "profiles": list(profiles.values()),
    }


def _profile(run: Run, key: tuple[int, int], labels: dict[tuple[int, int], str]) -> dict[str, Any]:
    rank, _ = key
    label = labels.get(key, "work without a launch")
    return {
        "type": "sampled",
        "name": f"rank {rank} {label}" if len(run.ranks) > 1 else label,
        "unit": "nanoseconds",
        "startValue": 0,
        "endValue": 0,
        "samples": [],
        "weights": [],
    }


def frame_label(frame: dict[str, Any]) -> str:
    """Function, file and line of a frame."""
    place = f"{frame['file'].rsplit('/', 1)[-1]}:{frame['line']}" if frame["line"] else frame["file"]
    return f"{frame['function']} ({place})" if frame["function"] else place


def speedscope_json(run: Run, *, device: bool = False) -> bytes:
    """`speedscope_document` as JSON."""
    return msgspec.json.encode(speedscope_document(run, device=device))


def folded_lines(run: Run, *, device: bool = False) -> Iterator[str]:
    """`frame;frame;frame nanoseconds`, outermost first; of several ranks the rank is the outermost frame."""
    frames = stack_frames(run)
    totals: dict[str, int] = {}
    for row in stack_rows(run, device=device):
        chain = [_flat(frame_label(frame)) for frame in frames.get(row["stack_id"], ())]
        if not chain:
            continue
        if len(run.ranks) > 1:
            chain.insert(0, f"rank {row['rank']}")
        text = ";".join(chain)
        totals[text] = totals.get(text, 0) + row["duration_ns"]
    for text, duration in sorted(totals.items(), key=lambda item: (-item[1], item[0])):
        yield f"{text} {duration}"


def _flat(label: str) -> str:
    """Semicolons part frames and line ends part chains: neither may stand in a frame."""
    return " ".join(label.replace(";", ",").split())
