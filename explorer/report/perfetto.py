"""A run, or a window of it, as Chrome trace JSON: opens in Perfetto, in chrome://tracing, and in tools that read torch traces.

After the Trace Event Format: `ts` and `dur` in microseconds with three decimals, so nanoseconds are kept; complete events
nest per thread. Events that overlap without nesting go to further threads of the same name, because viewers drop them.
Categories are those torch.profiler writes.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any

import msgspec
import numpy as np

from explorer.analysis.phrase import ROOT_MODULE
from explorer.analysis.sub_lanes import sub_lanes
from explorer.analysis.trace_rows import (
    WHOLE,
    Window,
    arrow_rows,
    begin_ns,
    clock_rows,
    counter_rows,
    device_rows,
    event_rows,
    line_rows,
    track_rows,
)
from explorer.report.whole_file import whole_file

if TYPE_CHECKING:
    import pyarrow as pa

    from explorer.analysis.run import Run

_encode = msgspec.json.Encoder(enc_hook=str).encode
_HOST = {
    "op": "cpu_op",
    "python": "python_function",
    "annotation": "user_annotation",
    "step": "user_annotation",
    "data": "user_annotation",
    "runtime": "cuda_runtime",
    "sync": "cuda_runtime",
    "collective": "cpu_op",
}
_DEVICE = {
    "kernel": "kernel",
    "collective": "kernel",
    "copy": "gpu_memcpy",
    "fill": "gpu_memset",
    "sync": "cuda_sync",
    "annotation": "gpu_user_annotation",
    "step": "gpu_user_annotation",
}
_FLOWS = {"launch": "ac2g", "forward_backward": "fwdbwd"}
_LANES_PER_TRACK = 1000
_BATCH_ROWS = 50_000


@dataclass(slots=True)
class Written:
    """What an export holds. `moved` counts events that a viewer would have dropped from their own track, `lines` the
    stretches of single source lines."""

    events: int = 0
    lines: int = 0
    arrows: int = 0
    counters: int = 0
    moved: int = 0


@dataclass(frozen=True, slots=True)
class _Clock:
    """One rank's clock against the reference rank's (`rank_clocks`): of many ranks, times are shown on one clock."""

    offset_ns: float = 0.0
    drift: float = 0.0
    reference_ns: int = 0

    def aligned(self, at_ns: int) -> int:
        return at_ns - round(self.offset_ns + self.drift * (at_ns - self.reference_ns))


@dataclass(slots=True)
class _Place:
    """Where a track is drawn."""

    pid: int
    tid: int
    is_device: bool
    device: int | None
    stream: int | None
    clock: _Clock


@dataclass(slots=True)
class _Processes:
    """Chrome processes: one per rank for each host process and each device."""

    numbers: dict[tuple[Any, ...], int] = field(default_factory=dict)
    names: dict[int, tuple[str, int]] = field(default_factory=dict)

    def number(self, key: tuple[Any, ...], name: str, order: int) -> int:
        found = self.numbers.get(key)
        if found is None:
            found = self.numbers[key] = len(self.numbers) + 1
            self.names[found] = (name, order)
        return found


def write_perfetto(run: Run, path: str | os.PathLike[str], window: Window = WHOLE) -> Written:
    """Write the window as JSON; gzip where the name ends in .gz. The file appears whole or not at all.

    Raises OSError when it cannot be written.
    """
    written = Written()
    with whole_file(path) as temporary, open(temporary, "wb") as plain:
        if os.fspath(path).endswith(".gz"):
            with gzip.GzipFile(filename="", fileobj=plain, mode="wb", compresslevel=6, mtime=0) as packed:
                _write(run, packed, window, written)
        else:
            _write(run, plain, window, written)
    return written


def _write(run: Run, file: IO[bytes] | gzip.GzipFile, window: Window, written: Written) -> None:
    base = begin_ns(run) // 1000 * 1000
    tracks, processes = _places(run)
    head = {
        "schemaVersion": 1,
        "displayTimeUnit": "ns",
        "baseTimeNanoseconds": base,
        "exporter": "neuron-explorer",
        "deviceProperties": _devices(run),
    }
    if run.ranks == [run.ranks[0]]:
        manifest = run.reader.manifests[run.ranks[0]]
        head["distributedInfo"] = {"rank": run.ranks[0], "world_size": manifest.world_size or 1}
    file.write(_encode(head)[:-1] + b',"traceEvents":[\n')
    first = True
    for row in _rows(run, window, base, tracks, processes, written):
        file.write(row if first else b",\n" + row)
        first = False
    file.write(b"\n]}\n")


def _devices(run: Run) -> list[dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for row in device_rows(run):
        kind, _, number = row["device"].partition(":")
        if number.isdecimal():
            properties = {
                "id": int(number),
                "name": row["name"],
                "totalGlobalMem": row["memory_bytes"],
                "numSms": row["unit_count"],
            }
            found.setdefault(
                row["device"], {key: value for key, value in properties.items() if value is not None}
            )
            found[row["device"]]["type"] = kind
    return list(found.values())


def _places(run: Run) -> tuple[dict[tuple[int, int], tuple[dict[str, Any], _Place]], _Processes]:
    processes = _Processes()
    found: dict[tuple[int, int], tuple[dict[str, Any], _Place]] = {}
    many = len(run.ranks) > 1
    clocks = _clocks(run) if many else {}
    for row in track_rows(run):
        rank = row["rank"]
        prefix = f"rank {rank} " if many else ""
        is_device = row["kind"] in ("stream", "engine", "queue") and row["device_type"] != "cpu"
        if is_device:
            device = f"{row['device_type']}:{row['device_index'] if row['device_index'] is not None else 0}"
            pid = processes.number(
                (rank, "device", device), f"{prefix}{device}", rank * 1000 + 500 + (row["device_index"] or 0)
            )
        else:
            process = row["process_id"]
            name = row["process_name"] or "host"
            pid = processes.number((rank, "host", process), f"{prefix}{name}", rank * 1000)
        place = _Place(
            pid,
            row["track_id"] * _LANES_PER_TRACK,
            is_device,
            row["device_index"],
            row["thread_id"],
            clocks.get(rank, _Clock()),
        )
        found[rank, row["track_id"]] = (row, place)
    return found, processes


def _clocks(run: Run) -> dict[int, _Clock]:
    return {
        row["rank"]: _Clock(row["offset_ns"], row["drift_ppb"] / 1e9, row["reference_ns"])
        for row in clock_rows(run)
    }


def _rows(
    run: Run,
    window: Window,
    base: int,
    tracks: dict[tuple[int, int], tuple[dict[str, Any], _Place]],
    processes: _Processes,
    written: Written,
) -> Iterator[bytes]:
    for pid, (name, order) in processes.names.items():
        yield _encode(
            {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "ts": 0, "args": {"name": name}}
        )
        yield _encode(
            {
                "ph": "M",
                "name": "process_sort_index",
                "pid": pid,
                "tid": 0,
                "ts": 0,
                "args": {"sort_index": order},
            }
        )
    events = event_rows(run, window)
    lanes = _lanes(events)
    written.events, written.moved = events.num_rows, int((lanes > 0).sum())
    yield from _thread_names(events, lanes, tracks)
    for low in range(0, events.num_rows, _BATCH_ROWS):
        for offset, row in enumerate(events.slice(low, _BATCH_ROWS).to_pylist()):
            place = tracks[row["rank"], row["track_id"]][1]
            yield _event(row, place, place.tid + int(lanes[low + offset]), base)
    yield from _arrows(run, window, events, lanes, tracks, base, written)
    yield from _lines(run, window, tracks, base, written)
    yield from _counters(run, window, tracks, base, written)


def _lanes(events: pa.Table) -> np.ndarray[Any, Any]:
    """The sub-lane of every event; rows are sorted by track and start."""
    lanes = np.zeros(events.num_rows, np.int64)
    if not events.num_rows:
        return lanes
    rank, track, start, duration = (
        events.column(name).to_numpy() for name in ("rank", "track_id", "start_ns", "duration_ns")
    )
    bounds = np.flatnonzero((np.diff(rank) != 0) | (np.diff(track) != 0)) + 1
    for low, high in zip([0, *bounds.tolist()], [*bounds.tolist(), events.num_rows]):
        lanes[low:high] = np.minimum(sub_lanes(start[low:high], duration[low:high]), _LANES_PER_TRACK - 2)
    return lanes


def _thread_names(
    events: pa.Table,
    lanes: np.ndarray[Any, Any],
    tracks: dict[tuple[int, int], tuple[dict[str, Any], _Place]],
) -> Iterator[bytes]:
    if not events.num_rows:
        return
    used = np.unique(
        np.stack([events.column("rank").to_numpy(), events.column("track_id").to_numpy(), lanes]), axis=1
    )
    for rank, track, lane in used.T.tolist():
        row, place = tracks[rank, track]
        label = row["label"] if lane == 0 else f"{row['label']} (overlap {lane})"
        where = {"pid": place.pid, "tid": place.tid + lane, "ts": 0}
        yield _encode({"ph": "M", "name": "thread_name", **where, "args": {"name": label}})
        yield _encode(
            {"ph": "M", "name": "thread_sort_index", **where, "args": {"sort_index": place.tid + lane}}
        )


def _event(row: dict[str, Any], place: _Place, tid: int, base: int) -> bytes:
    category = row["category"]
    args: dict[str, Any] = msgspec.json.decode(row["attributes"]) if row["attributes"] else {}
    if row["file"] is not None:
        args["source line"] = f"{row['file']}:{row['line']}"
        args["function"] = row["function"]
        args["source code"] = row["code"]
    args |= {
        "category": category,
        "attribution": row["attribution"],
        "precision": row["precision"],
        "op": row["op"],
        "module": f"{row['module'] or ROOT_MODULE} ({row['module_class']})" if row["module_class"] else None,
        "step": row["step"],
        "phase": row["phase"],
        "correlation": row["correlation_id"],
        "flops": row["flops"],
        "bytes": row["size_bytes"],
        "event": f"{row['rank']}:{row['event_id']}",
    }
    for name, key in (("shapes", "Input Dims"), ("dtypes", "Input type")):
        if row[name]:
            args[key] = _decoded(row[name])
    if place.is_device:
        args["device"] = place.device or 0
        if place.stream is not None:
            args["stream"] = place.stream
    # Times stand in the text as exact decimals, behind an encoded row without them.
    text = _encode(
        {
            "ph": "X",
            "cat": (_DEVICE if place.is_device else _HOST).get(category, category),
            "name": row["name"],
            "pid": place.pid,
            "tid": tid,
            "args": {key: value for key, value in args.items() if value is not None},
        }
    )
    return text[:-1] + _when(row, place, base)


def _decoded(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text


def _when(row: dict[str, Any], place: _Place, base: int) -> bytes:
    """Both ends are aligned, so that what nests on a rank's clock nests here."""
    start = place.clock.aligned(row["start_ns"])
    duration = place.clock.aligned(row["start_ns"] + row["duration_ns"]) - start
    return f',"ts":{_us(start - base)},"dur":{_us(duration)}}}'.encode()


def _us(ns: int) -> str:
    sign = "-" if ns < 0 else ""
    whole, rest = divmod(abs(ns), 1000)
    return f"{sign}{whole}.{rest:03d}"


def _lines(
    run: Run,
    window: Window,
    tracks: dict[tuple[int, int], tuple[dict[str, Any], _Place]],
    base: int,
    written: Written,
) -> Iterator[bytes]:
    """Beside each recorded thread a row that shows the user line it was executing."""
    rows = line_rows(run, window)
    written.lines = rows.num_rows
    named: set[tuple[int, int]] = set()
    for low in range(0, rows.num_rows, _BATCH_ROWS):
        for row in rows.slice(low, _BATCH_ROWS).to_pylist():
            track, place = tracks[row["rank"], row["track_id"]]
            where = {"pid": place.pid, "tid": place.tid + _LANES_PER_TRACK - 1}
            if (row["rank"], row["track_id"]) not in named:
                named.add((row["rank"], row["track_id"]))
                label = f"{track['label']}: source line"
                yield _encode({"ph": "M", "name": "thread_name", **where, "ts": 0, "args": {"name": label}})
            args = {"source code": row["code"], "function": row["function"]}
            name = f"{row['file']}:{row['line']}"
            text = _encode({"ph": "X", "cat": "source_line", "name": name, **where, "args": args})
            yield text[:-1] + _when(row, place, base)


def _arrows(
    run: Run,
    window: Window,
    events: pa.Table,
    lanes: np.ndarray[Any, Any],
    tracks: dict[tuple[int, int], tuple[dict[str, Any], _Place]],
    base: int,
    written: Written,
) -> Iterator[bytes]:
    arrows = arrow_rows(run, window)
    if not arrows.num_rows:
        return
    columns = [events.column(name).to_pylist() for name in ("rank", "event_id", "track_id", "start_ns")]
    where = {
        (rank, event): (track, start, lane)
        for rank, event, track, start, lane in zip(*columns, lanes.tolist())
    }
    for number, row in enumerate(arrows.to_pylist(), 1):
        ends = ((row["source_rank"], row["source_id"]), (row["target_rank"], row["target_id"]))
        written.arrows += 1
        for phase, (rank, event) in zip("sf", ends):
            track, start, lane = where[rank, event]
            place = tracks[rank, track][1]
            fields: dict[str, Any] = {
                "ph": phase,
                "id": number,
                "cat": _FLOWS.get(row["kind"], row["kind"]),
                "name": _FLOWS.get(row["kind"], row["kind"]),
                "pid": place.pid,
                "tid": place.tid + lane,
            }
            if phase == "f":
                fields["bp"] = "e"
            yield _encode(fields)[:-1] + f',"ts":{_us(place.clock.aligned(start) - base)}}}'.encode()


def _counters(
    run: Run,
    window: Window,
    tracks: dict[tuple[int, int], tuple[dict[str, Any], _Place]],
    base: int,
    written: Written,
) -> Iterator[bytes]:
    rows = counter_rows(run, window)
    for low in range(0, rows.num_rows, _BATCH_ROWS):
        for row in rows.slice(low, _BATCH_ROWS).to_pylist():
            track, place = tracks[row["rank"], row["track_id"]]
            if row["value"] is None:
                continue
            written.counters += 1
            device = (
                f" {track['device_type']}:{track['device_index']}"
                if track["device_index"] is not None
                else ""
            )
            fields = {
                "ph": "C",
                "name": f"{row['name']}{device}",
                "pid": place.pid,
                "tid": 0,
                "args": {row["unit"] or "value": row["value"]},
            }
            yield (
                _encode(fields)[:-1]
                + f',"ts":{_us(place.clock.aligned(row["timestamp_ns"]) - base)}}}'.encode()
            )
