"""Build one big, valid Kineto trace from real ones, the same bytes every time.

    python benchmarks/build_big_trace.py 500MB /tmp/big.json [--from FOLDER] [TRACE ...]

Whole copies of the given traces are laid one after the other in time; in each copy, correlation ids, flow ids, External
ids, Python ids and step numbers are shifted so that they stay unique, between copies and between traces, as in one long
capture of one process (a reader that joins launches to device work by correlation id alone would else join one trace's to
another's). Events keep every field and their text layout (one event per line). Nothing is compressed; the output belongs
outside the repository.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import sys
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any

import msgspec

DEFAULT_TRACES = (
    "amd/tl_xdit_flux_aiter_sage_capture.json.gz",
    "amd/tl_mi300_resnet_act_checkpoint.json.gz",
    "nvidia/hta_nccl_parser_config.json.gz",
    "nvidia/param_linear_rtx2080ti.json.gz",
)
SHIFTED = (
    "correlation",
    "External id",
    "external id",
    "Python id",
    "Python parent id",
    "Ev Idx",
    "Record function id",
    "wait_on_cuda_event_record_corr_id",
)
_STEP = re.compile(r"ProfilerStep#(\d+)")


def load(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Top-level keys and events of one trace."""
    data = path.read_bytes()
    document = json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
    if isinstance(document, list):
        return {}, document
    return {k: v for k, v in document.items() if k != "traceEvents"}, document["traceEvents"]


class Part:
    """One source trace, ready to be copied: its events with the places of what a copy changes."""

    def __init__(self, path: Path, pid: int) -> None:
        self.head, events = load(path)
        timed = [
            e for e in events if isinstance(e.get("ts"), (int, float)) and e.get("ph") != "M" and e["ts"] > 0
        ]
        self.first = min(e["ts"] for e in timed)
        self.span = max(e["ts"] + e.get("dur", 0) for e in timed) - self.first
        self.stride = 1 + max(
            (abs(v) for e in events for v in _numbers(e) if isinstance(v, int) and abs(v) < 1 << 40),
            default=0,
        )
        self.steps = 1 + max(
            (int(m.group(1)) for e in events if (m := _STEP.fullmatch(str(e.get("name", ""))))), default=0
        )
        # Threads of every source trace become threads of one process.
        self.events = [self._own_threads(e, pid) for e in events if e.get("ph") in ("X", "s", "f", "t", "i")]
        self.metadata = [e for e in events if e.get("ph") == "M"]

    @staticmethod
    def _own_threads(event: dict[str, Any], pid: int) -> dict[str, Any]:
        host = isinstance(event.get("pid"), int) and event["pid"] > 64
        return {**event, "pid": pid} if host else event

    def copy(self, number: int, start_us: float, ids: int) -> Iterator[bytes]:
        """Events of copy `number`, the first at `start_us`, every id of them greater by `ids`."""
        steps = number * self.steps
        encode = msgspec.json.encode
        for event in self.events:
            event = dict(event)
            if isinstance(event["ts"], (int, float)):
                event["ts"] = round(event["ts"] - self.first + start_us, 3)
            if isinstance(event.get("id"), int) and event["id"] < 1 << 40:
                event["id"] += ids
            name = event.get("name")
            if steps and isinstance(name, str) and (found := _STEP.fullmatch(name)):
                event["name"] = f"ProfilerStep#{int(found.group(1)) + steps}"
            arguments = event.get("args")
            if arguments:
                event["args"] = arguments = dict(arguments)
                for key in SHIFTED:
                    value = arguments.get(key)
                    if isinstance(value, int) and abs(value) < 1 << 40:
                        arguments[key] = value + ids
            yield encode(event)


def _numbers(event: dict[str, Any]) -> Iterator[Any]:
    yield event.get("id", 0)
    arguments = event.get("args")
    if isinstance(arguments, dict):
        for key in SHIFTED:
            yield arguments.get(key, 0)


def build(paths: list[Path], size_bytes: int, out: Path) -> tuple[int, int]:
    """Write the trace; returns its events and bytes."""
    parts = [Part(path, 1000 + number) for number, path in enumerate(paths)]
    *first_ids, ids_a_round = accumulate((part.stride for part in parts), initial=0)
    head = {
        "schemaVersion": 1,
        "deviceProperties": parts[0].head.get("deviceProperties", []),
        "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 1},
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": 1735632360000000000,
    }
    events = written = number = 0
    now = 1000.0
    with out.open("wb", buffering=1 << 20) as file:
        written += file.write(json.dumps(head).encode()[:-1] + b',\n"traceEvents": [\n')
        first = True
        for part in parts:
            for event in part.metadata:
                written += file.write((b"" if first else b",\n") + msgspec.json.encode(event))
                first = False
                events += 1
        while written < size_bytes:
            for part, first_id in zip(parts, first_ids, strict=True):
                for text in part.copy(number, now, number * ids_a_round + first_id):
                    written += file.write((b"" if first else b",\n") + text)
                    first = False
                    events += 1
                now = round(now + part.span + 1000.0, 3)
                if written >= size_bytes:
                    break
            number += 1
        written += file.write(b'\n], "traceName": "built"}\n')
    return events, written


def parse_size(text: str) -> int:
    """500MB, 2GB or a number of bytes."""
    found = re.fullmatch(r"(?i)(\d+(?:\.\d+)?)\s*([KMG]?)B?", text)
    if not found:
        raise SystemExit(f"{text} is no size; write 500MB or 2GB")
    return int(float(found.group(1)) * {"": 1, "K": 10**3, "M": 10**6, "G": 10**9}[found.group(2).upper()])


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("size")
    parser.add_argument("output", type=Path)
    parser.add_argument("traces", nargs="*")
    parser.add_argument(
        "--from", dest="folder", type=Path, default=Path(__file__).resolve().parents[2] / "shared" / "traces"
    )
    chosen = parser.parse_args()
    names = chosen.traces or DEFAULT_TRACES
    events, size = build([chosen.folder / name for name in names], parse_size(chosen.size), chosen.output)
    print(f"{chosen.output}: {events:,} events, {size:,} bytes", file=sys.stderr)


if __name__ == "__main__":
    main()
