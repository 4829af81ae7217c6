"""Tracks from pid and tid, whatever a profiler puts there, with device, stream and names from the metadata rows."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from explorer.collectors.kineto.events import Events
from explorer.collectors.kineto.light import NONE, Ints, LightRows, Sparse

_STREAM = re.compile(r"(?i)stream\s*#?\s*(-?\d+)")
_TRAILING_NUMBER = re.compile(r"(-?\d+)\s*$")
_INT64 = 1 << 63


@dataclass(slots=True)
class TrackFacts:
    """What the events of one (pid, tid) say about their track."""

    on_device: bool = False
    counter_only: bool = False
    asynchronous: bool = False
    device: int | None = None
    stream: int | None = None


def describe_track(
    track_id: int,
    pid: str | None,
    tid: str | None,
    facts: TrackFacts,
    device_type: str,
    process_name: str | None,
    process_labels: str | None,
    thread_name: str | None,
) -> dict[str, Any]:
    """One row of `tracks`."""
    thread = _number(tid)
    row: dict[str, Any] = {
        "track_id": track_id,
        "kind": "thread",
        "device_type": "cpu",
        "device_index": None,
        "process_id": _number(pid),
        "process_name": process_name or process_labels or (pid if pid and _number(pid) is None else None),
        "thread_id": thread,
        "thread_name": thread_name or (tid if tid and thread is None else None),
    }
    if facts.on_device:
        stream = facts.stream
        if stream is None and (found := _STREAM.search(thread_name or tid or "")):
            stream = int(found.group(1))
        if stream is None:
            stream = thread
        device = facts.device
        if device is None and (found := _TRAILING_NUMBER.search(process_labels or "")):
            device = int(found.group(1))
        if device is None and (number := _number(pid)) is not None and 0 <= number < 1024:
            device = number
        row |= {
            "kind": "stream",
            "device_type": device_type,
            "device_index": 0 if device is None or not 0 <= device < 1 << 31 else device,
            "thread_id": stream,
        }
        name = f"stream {stream}" if stream is not None else thread_name or tid or "stream"
        if (
            process_name
            and process_name not in ("python", "Python")
            and thread_name
            and not _STREAM.search(thread_name)
        ):
            name = thread_name
        row["label"] = f"{device_type}:{row['device_index']} {name}"
        return row
    if facts.counter_only:
        row["kind"] = "counter"
        row["label"] = process_name or f"process {pid}"
        return row
    if facts.asynchronous:
        row["kind"] = "queue"
    name = thread_name or (f"thread {tid}" if thread is not None else tid) or "thread"
    row["label"] = str(name)
    return row


def _number(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        value = int(text)
    except ValueError:
        return None
    return value if -_INT64 <= value < _INT64 else None


@dataclass
class Processes:
    """What the metadata rows say: process names and labels by pid, thread names by (pid, tid)."""

    names: dict[str | None, str] = field(default_factory=dict)
    labels: dict[str | None, str] = field(default_factory=dict)
    threads: dict[tuple[str | None, str | None], str] = field(default_factory=dict)

    def by_track(self, light: LightRows) -> list[str | None]:
        """Process name of every track."""
        return [self.names.get(pid) for pid, _ in light.tracks]


def process_facts(light: LightRows, is_metadata: npt.NDArray[np.bool_]) -> Processes:
    """Names and labels from the metadata rows."""
    result = Processes()
    for row, text in light.labels:
        if not is_metadata[row]:
            continue
        track = light.tracks[light.track[row]]
        name = light.names[light.name[row]]
        if name == "process_name":
            result.names[track[0]] = text
        elif name == "process_labels":
            result.labels[track[0]] = text
        elif name == "thread_name":
            result.threads[track] = text
    return result


def find_tracks(
    light: LightRows,
    events: Events,
    counter_tracks: npt.NDArray[np.int32],
    device_type: str,
    processes: Processes,
) -> list[dict[str, Any]]:
    """One row of `tracks` per (pid, tid)."""
    count = len(light.tracks)
    number_of = np.bincount(events.track, minlength=count)
    on_device = np.bincount(events.track[events.on_device], minlength=count)
    asynchronous = np.bincount(events.track[events.asynchronous], minlength=count)
    streams = _usual(light.numbers["stream"].within(events.row), events)
    devices = _usual(light.numbers["device"].within(events.row), events)
    counters = set(counter_tracks.tolist())
    return [
        describe_track(
            track,
            pid,
            tid,
            TrackFacts(
                on_device=bool(on_device[track]),
                counter_only=track in counters and not number_of[track],
                asynchronous=bool(number_of[track]) and asynchronous[track] == number_of[track],
                device=devices.get(track),
                stream=streams.get(track),
            ),
            device_type,
            processes.names.get(pid),
            processes.labels.get(pid),
            processes.threads.get((pid, tid)),
        )
        for track, (pid, tid) in enumerate(light.tracks)
    ]


def _usual(numbers: Sparse, events: Events) -> dict[int, int]:
    """The most frequent number of the device events of each track."""
    which = events.on_device[numbers.row] & (numbers.value != NONE)
    if not which.any():
        return {}
    values, position = np.unique(numbers.value[which], return_inverse=True)
    key: Ints = events.track[numbers.row[which]].astype(np.int64) * len(values) + position
    distinct, counts = np.unique(key, return_counts=True)
    result: dict[int, int] = {}
    for place in np.argsort(counts, kind="stable").tolist():
        track, value = divmod(int(distinct[place]), len(values))
        result[track] = int(values[value])
    return result


def device_type_of(
    categories: set[str], top_level: dict[str, Any], names: list[str | None], processes: set[str]
) -> str:
    """cuda, hip, xpu, mtia, npu, hpu or privateuseone: from categories, then metadata, then runtime calls and kernels."""
    lower = {category.lower() for category in categories}
    for prefix, kind in (("mtia", "mtia"), ("xpu", "xpu"), ("hpu", "hpu"), ("privateuse1", "privateuseone")):
        if any(category.startswith(prefix) for category in lower):
            return kind
    if processes & {"Ascend Hardware", "CANN"}:
        return "npu"
    if any(key.startswith(("hip_", "roctracer", "rocprof")) for key in top_level):
        return "hip"
    if any(key.startswith(("cuda_", "cupti_")) for key in top_level):
        return "cuda"
    properties = top_level.get("deviceProperties")
    if isinstance(properties, list):
        for device in properties:
            text = str(device.get("name", "")) if isinstance(device, dict) else ""
            if re.search(r"AMD|Radeon|Instinct|MI\d{3}", text):
                return "hip"
            if re.search(r"NVIDIA|Tesla|GeForce|[ABHLTV]\d{2,3}\b|Quadro|RTX", text):
                return "cuda"
            if re.search(r"Intel|Xe\b|Arc\b|Max \d", text):
                return "xpu"
    if any(name.startswith(("hip", "Cijk_", "__amd_rocclr")) for name in names if name):
        return "hip"
    return "cuda"
