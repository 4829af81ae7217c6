"""Hostile and damaged files of every format: refused in one line, or read with what was lost said; never a crash,
a hang, much memory, a half-written run, a changed input or an event that was not in the file. `attack` checks these."""

from __future__ import annotations

import gzip
import json
import pickle
import random
import re
import sqlite3
import struct
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.collectors.attack import Outcome, attack
from tests.collectors.perfetto import test_track_events as perfetto
from tests.collectors.rocpd import test_rocpd as rocpd
from tests.collectors.speedscope import test_speedscope as speedscope
from tests.collectors.wire_writer import message
from tests.traces import trace


def made_perfetto(folder: Path) -> bytes:
    slices = [
        part
        for number in range(20)
        for part in (
            perfetto.slice_begin(1000 * number + 5, 2, f"op{number}"),
            perfetto.slice_end(1000 * number + 500, 2),
        )
    ]
    return perfetto.write(folder / "made", *perfetto.TRACKS, *slices).read_bytes()


def made_speedscope(folder: Path) -> bytes:
    evented = {"type": "evented", "name": "a", "unit": "seconds", "startValue": 0, "endValue": 9}
    evented["events"] = [
        {"type": kind, "frame": frame, "at": at}
        for kind, frame, at in (("O", 0, 0), ("O", 1, 1), ("C", 1, 2), ("C", 0, 5))
    ]
    sampled = {"type": "sampled", "name": "b", "unit": "microseconds", "startValue": 0, "endValue": 9}
    sampled |= {"samples": [[0], [0, 1], [0, 2]], "weights": [1, 2, 3]}
    shared = {"frames": speedscope.FRAMES}
    return json.dumps(
        {"$schema": speedscope.SCHEMA, "shared": shared, "profiles": [evented, sampled]}
    ).encode()


def made_rocpd(folder: Path) -> bytes:
    path = rocpd.make(folder / "made", (rocpd.COMMON + rocpd.INLINE, rocpd.SET, 3))
    return Path(path).read_bytes()


def made_rocprof(folder: Path) -> bytes:
    """The first dispatches of a real file."""
    document = json.loads(gzip.decompress(trace("amd/tl_rocprofv3_908_results.json.gz").read_bytes()))
    (tool,) = document["rocprofiler-sdk-tool"]
    tool["buffer_records"] = {name: rows[:10] for name, rows in tool["buffer_records"].items()}
    tool["kernel_symbols"] = tool["kernel_symbols"][:60]
    return json.dumps(document).encode()


def real(name: str) -> Callable[[Path], bytes]:
    def read(folder: Path) -> bytes:
        data = trace(name).read_bytes()
        return gzip.decompress(data) if name.endswith(".gz") else data

    return read


FILES: dict[str, Callable[[Path], bytes]] = {
    "snapshot.pickle": real("memory/cuda_snapshot_magma27.pickle"),
    "snapshot.pkl": real("memory/npu_snapshot_expandable.pkl"),
    "timeline.raw.json": real("memory/hta_memory_timeline.raw.json.gz"),
    "nsys.sqlite": real("nsys/nsysai_mock.sqlite"),
    "ascend.db": real("ascend/multirank_level1/rank0_ascend_pytorch_profiler.db"),
    "rocpd.db": made_rocpd,
    "x.xplane.pb": real("xplane/tl_jax08_gemm_mi300.xplane.pb"),
    "rocprof.json": made_rocprof,
    "et.json": real("nvidia/hta_execution_trace/benchmark_simple_add_et.json.gz"),
    "x.pftrace": made_perfetto,
    "x.speedscope.json": made_speedscope,
    "kineto.json": real("amd/hta_mi250_minitoy_rocm62.json.gz"),
    "trace_view.json": real("odd/truncated_json.json"),
    "generic.json": real("generic/speedscope_multiprocess.json"),
    "async.json": real("generic/catapult_nestable_async.json"),
}


EXACT = (
    "snapshot.pickle",
    "snapshot.pkl",
    "nsys.sqlite",
    "ascend.db",
    "rocpd.db",
    "rocprof.json",
    "et.json",
)
"""In the others the zero of time or the ends of events can stand behind the events; names can do so in all."""


def rows(outcome: Outcome) -> Counter[tuple[Any, ...]]:
    return outcome.events() + outcome.memory()


def times(outcome: Outcome) -> Counter[tuple[Any, ...]]:
    return outcome.rows("events", "start_ns", "duration_ns") + outcome.memory()


@pytest.mark.parametrize("name", FILES)
def test_a_file_cut_anywhere(name: str, tmp_path: Path) -> None:
    data = FILES[name](tmp_path)
    step = len(data) // 6 + 1
    cuts = {f"{end}/{name}": data[:end] for end in range(step, len(data), step)}
    found = attack({name: data, **cuts}, tmp_path / "runs")
    whole = found.pop(name)
    for each in found.values():
        # JSON lists may end open without loss (Chrome's array format); that is said in health.
        assert each.code in (3, 4) or "unclosed_array" in each.health(), each.name
        assert sum(rows(each).values()) <= sum(rows(whole).values()), each.name
        if name in EXACT:
            assert not times(each) - times(whole), each.name
    # What is nearly whole is read.
    assert each.run is not None
    assert each.run.manifests[0].counts["source_total"] > 0


@pytest.mark.parametrize("name", FILES)
def test_bytes_changed_anywhere(name: str, tmp_path: Path) -> None:
    data = FILES[name](tmp_path)
    chance = random.Random(name)
    files = {name: data}
    for number in range(4):
        broken = bytearray(data)
        for _ in range(3):
            broken[chance.randrange(len(data))] = chance.randrange(256)
        files[f"{number}/{name}"] = bytes(broken)
    found = attack(files, tmp_path / "runs")
    whole = found.pop(name)
    for each in found.values():
        assert sum(rows(each).values()) <= sum(rows(whole).values()) + 9, each.name


def test_pickles_that_want_to_run_code_or_to_take_all_memory(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    command = f"touch {mark}".encode()
    start = b"\x80\x04"
    good = pickle.dumps(
        {
            "segments": [],
            "device_traces": [[{"action": "alloc", "addr": 1, "size": 2, "stream": 0, "frames": []}]],
        },
        4,
    )
    code = {
        "reduce": start + b"cos\nsystem\n(S'" + command + b"'\ntR.",
        "stack_global": start
        + b"\x8c\x02os\x8c\x06system\x93X"
        + struct.pack("<I", len(command))
        + command
        + b"\x85R.",
        "inst": start + b"(S'" + command + b"'\nios\nsystem\n.",
        "persistent": start + b"Pabc\n.",
        "behind a snapshot": good[:-1] + b"0cos\nsystem\n(S'" + command + b"'\ntR.",
    }
    doubled = b"]q\x00" + b"".join(
        b"]q" + bytes([n + 1]) + b"(h" + bytes([n]) + b"h" + bytes([n]) + b"e" for n in range(60)
    )
    segments = b"}X\x08\0\0\0segments"
    devices = b"X\x0d\0\0\0device_traces"
    greedy = {
        "long number": start + b"\x8b" + struct.pack("<i", 2**31 - 1) + b"x.",
        "long text": start + b"X" + struct.pack("<I", 2**32 - 1) + b"x.",
        "long bytes": start + b"\x96" + struct.pack("<Q", 2**40) + b"x.",
        "memo": start + b"}r" + struct.pack("<I", 2**32 - 1) + b".",
        "deep tuples": start + b"N" + b"\x85" * 500_000 + b".",
        "marks": start + b"(" * 1_000_000 + b".",
    }
    odd = {
        "deep segments": start + segments + b"]" * 100_000 + b"a" * 99_999 + b"s" + devices + b"]s.",
        "doubled": start + segments + doubled + b"s" + devices + b"]s.",
        "in itself": start + b"}q\0X\x08\0\0\0segments](h\0es" + devices + b"](](h\0ees.",
        "odd types": pickle.dumps({"segments": {"a": 1}, "device_traces": {"b": 2}}),
        "odd numbers": pickle.dumps(
            {
                "segments": [
                    {"device": 10**30, "total_size": 10**40, "blocks": [{"size": 10**30, "address": "x"}]}
                ],
                "device_traces": [[{"action": "alloc", "addr": 10**40, "size": 10**40, "time_us": 10**40}]],
            }
        ),
    }
    found = attack(
        {f"{name}/a.pickle": data for name, data in (code | greedy | odd).items()}, tmp_path / "runs"
    )
    for name in code:
        each = found[f"{name}/a.pickle"]
        assert each.code == 3, name
        assert "would run code" in each.said, (name, each.said)
    assert {found[f"{name}/a.pickle"].code for name in greedy} == {3}
    assert not mark.exists()


def test_databases_with_code_in_them(tmp_path: Path) -> None:
    """Triggers, views, a generated column, a table that recurses, attached names and a log beside the file."""
    path = tmp_path / "x.sqlite"
    with sqlite3.connect(path) as file:
        file.executescript(
            """
            CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
            CREATE TABLE NVTX_EVENTS (start INT, end INT, eventType INT, text TEXT, globalTid INT);
            INSERT INTO NVTX_EVENTS VALUES (1, 5, 59, 'a', 9);
            CREATE TABLE sneaky (start INT, big AS (hex(zeroblob(400000000))));
            INSERT INTO sneaky (start) VALUES (1);
            CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)
              SELECT i AS start, i + 1 AS end FROM n;
            CREATE TRIGGER t AFTER INSERT ON NVTX_EVENTS BEGIN DELETE FROM NVTX_EVENTS; END;
            """
        )
    (found,) = attack({"x.sqlite": path.read_bytes()}, tmp_path / "runs").values()
    assert (found.code, found.events()) == (0, {("a", 1, 4): 1})
    assert found.health()["schema_code_ignored"] == 2


def test_profiles_whose_numbers_lie(tmp_path: Path) -> None:
    def plane(*event: tuple[int, int]) -> bytes:
        line = message((1, 1), (2, "t"), (3, 1000), (4, message((1, 1), *event)))
        names = message((1, 1), (2, message((1, 1), (2, "op"))))
        return message((1, message((2, "/host:CPU"), (3, line), (4, names))))

    good = plane((2, 5000), (3, 7000))
    nested = b""
    for _ in range(2_000):
        nested = message((1, nested))
    files = {
        "length beyond the file": good + b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7fx",
        "number without end": good + b"\x08" + b"\xff" * 11,
        "recursive": good + nested,
        "offset beyond all time": plane((2, 2**62), (3, 2**62)),
        "negative duration": plane((2, 5000), (3, 2**64 - 7000)),
        "empty planes": good + message(*[(1, b"")] * 100_000),
        "repeated for ever": plane((5, 2**40), (3, 7000)),
        "no lines": good + message((1, message((2, "/device:GPU:0")))),
        # What became of the published TPU example: every byte over 0x7f went through a text editor.
        "sent as text": re.sub(rb"[\x80-\xff]", b"\xef\xbf\xbd", plane((2, 900_000), (3, 7000))),
    }
    found = attack({f"{name}/a.xplane.pb": data for name, data in files.items()}, tmp_path / "runs")
    for name, each in found.items():
        assert sum(each.events().values()) <= 1, name
    assert found["no lines/a.xplane.pb"].events() == {("op", 1005, 7): 1}
    for name in ("length beyond the file", "number without end"):
        each = found[f"{name}/a.xplane.pb"]
        assert (each.code, each.events()) == (4, {("op", 1005, 7): 1}), name
    assert sum(found["negative duration/a.xplane.pb"].events().values()) == 0
    assert found["negative duration/a.xplane.pb"].code == 4


def test_json_of_the_right_name_and_the_wrong_shape(tmp_path: Path) -> None:
    scope = '{"$schema": "https://www.speedscope.app/file-format-schema.json", "shared": {"frames": %s}, "profiles": %s'
    texts = {
        "deep": '{"rocprofiler-sdk-tool":[' + "[" * 100_000 + "]}",
        "number": '{"rocprofiler-sdk-tool": 5}',
        "rows": '{"rocprofiler-sdk-tool": [{"buffer_records": {"kernel_dispatch": [5, null, {"start_timestamp": 1e400, '
        '"end_timestamp": "x"}, {"start_timestamp": -1, "end_timestamp": 99999999999999999999999}]}}]}',
        "frames": scope % ("5", '"x"}'),
        "deep profiles": scope % ("[]", "[" * 50_000),
        "places": scope
        % (
            '[{"name": "a"}]',
            '[{"type": "sampled", "unit": "seconds", "samples": [[0, -5, 99999999999]], "weights": [1e308]}, '
            '{"type": "evented", "unit": "none", "events": [{"type": "O", "frame": -1, "at": "x"}]}, 5]}',
        ),
        "nodes": '{"schema": "1.0", "pid": 1, "nodes": [{"id": 1, "parent": 1, "name": "x"}, 5, {"id": "a"}]}',
    }
    found = attack({f"{name}/x.json": text.encode() for name, text in texts.items()}, tmp_path / "runs")
    assert [name for name, each in found.items() if each.events()] == []


def test_neuron_and_flight_recorder_files_cut_off_or_absurd(tmp_path: Path) -> None:
    summary = json.dumps(
        {"graph": {"total_time": 5, "hbm_read_bytes": 9, **{f"x{n}": n for n in range(4000)}}}
    )
    rows = [{"timestamp": 5000 * n, "duration": 1000, "label": "pe", "opcode": "matmul"} for n in range(4000)]
    legacy = json.dumps({"instruction": rows})
    log = "".join(
        json.dumps({"neuron_runtime_data": [], "system_data": {"n": n}}) + "\n" for n in range(4000)
    )
    dump = json.dumps(
        {
            "version": "2.4",
            "pg_config": {},
            "entries": [
                {
                    "record_id": n,
                    "pg_id": 0,
                    "collective_seq_id": n,
                    "time_created_ns": n,
                    "profiling_name": "nccl:all_reduce",
                }
                for n in range(4000)
            ],
        }
    )
    files = {}
    for name, text in (
        ("summary.json", summary),
        ("old.json", legacy),
        ("monitor.ndjson", log),
        ("dump.json", dump),
    ):
        files[f"whole/{name}"] = text.encode()
        files[f"cut/{name}"] = text[: len(text) // 2].encode()
        packed = gzip.compress(text.encode())
        files[f"cut gzip/{name}"] = packed[: len(packed) // 2]
    files["deep/monitor.ndjson"] = log.encode() + b'{"neuron_runtime_data":' + b"[" * 100_000
    files["numbers/summary.json"] = (
        b'{"total_time": 1e999, "hbm_read_bytes": 1%s, "mfu_estimated_percent": NaN}' % (b"0" * 400)
    )
    files["numbers/old.json"] = (
        b'{"instruction": [{"timestamp": NaN, "duration": 1}, {"timestamp": 1e999, "duration": 5}, '
        b'{"timestamp": 1%s, "duration": 5}, {"timestamp": 1000, "duration": -5}, {"timestamp": 7000, "duration": 2000}]}'
    ) % (b"0" * 400)
    found = attack(files, tmp_path / "runs")
    for name, each in found.items():
        assert each.code == (0 if name.startswith("whole") else 4) or name.startswith(("numbers", "deep")), (
            name
        )
    cut = found["cut gzip/old.json"].rows("events", "start_ns", "duration_ns")
    assert 100 < sum(cut.values()) < 4000
    assert not cut - found["whole/old.json"].rows("events", "start_ns", "duration_ns")
    assert found["numbers/old.json"].rows("events", "start_ns", "duration_ns") == {(7, 2): 1}
