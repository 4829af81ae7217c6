"""Perfetto track events, written here by field number (checked once by hand against the official package's builder)."""

from __future__ import annotations

import json
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from explorer.collectors.import_trace import import_trace
from explorer.model.errors import InputError
from tests.collectors.imported import Imported
from tests.collectors.wire_writer import fixed64, message

BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4


def packet(*fields, time=None, sequence=1) -> bytes:
    times = [] if time is None else [(8, time)]
    return message(*times, (10, sequence), *fields)


def track(uuid, *fields) -> bytes:
    return packet((60, message((1, uuid), *fields)))


def slice_begin(time, uuid, name, *fields) -> bytes:
    return packet((11, message((9, BEGIN), (11, uuid), (23, name), *fields)), time=time)


def slice_end(time, uuid) -> bytes:
    return packet((11, message((9, END), (11, uuid))), time=time)


def annotation(name, **value) -> bytes:
    ((kind, content),) = value.items()
    return message((10, name), ({"uint": 3, "integer": 4, "real": 5, "text": 6}[kind], content))


TRACKS = (
    track(1, (3, message((1, 77), (6, "python")))),
    track(2, (5, 1), (4, message((1, 77), (2, 78), (5, "main")))),
    track(3, (2, "GPU 1 stream 7")),
    track(4, (5, 1), (2, "memory"), (8, message((3, 3), (5, 1)))),
)


def write(path, *packets: bytes):
    path.write_bytes(message(*((1, value) for value in packets)))
    return path


def imported(tmp_path, *packets: bytes) -> Imported:
    run = Imported(write(tmp_path / "x.pftrace", *packets), tmp_path)
    run.check_counts()
    return run


def test_slices_links_lines_and_flows(tmp_path):
    call = message((9, BEGIN), (11, 2), (10, 1), (3, 1), (4, message((1, 1), (3, 5))), (34, 1)) + fixed64(
        47, 9
    )
    names = message(
        (2, message((1, 1), (2, "hipLaunchKernel"))),
        (1, message((1, 1), (2, "hip_api"))),
        (3, message((1, 1), (2, "corr_id"))),
        (4, message((1, 1), (2, "/home/u/train.py"), (3, "step"), (4, 12))),
    )
    kernel = message(
        (9, BEGIN), (11, 3), (23, "my_gemm"), (22, "kernel_dispatch"), (4, annotation("corr_id", uint=5))
    ) + fixed64(48, 9)
    run = imported(
        tmp_path,
        *TRACKS,
        packet((12, names), (13, 1), (11, call), time=100),
        slice_end(150, 2),
        packet((11, kernel), time=160),
        slice_end(260, 3),
        packet(
            (
                11,
                message(
                    (9, INSTANT),
                    (11, 2),
                    (23, "mark"),
                    (4, message((10, "d"), (11, annotation("k", real=1.5)))),
                ),
            ),
            time=300,
        ),
    )
    events = {row["name"]: row for row in run.rows("events")}
    launch, gemm = events["hipLaunchKernel"], events["my_gemm"]
    assert (launch["start_ns"], launch["duration_ns"], launch["category"]) == (100, 50, "runtime")
    assert (gemm["category"], gemm["launch_id"], gemm["attribution"], gemm["precision"]) == (
        "kernel",
        launch["event_id"],
        "flow",
        "exact",
    )
    (site,) = run.rows("sites")
    assert (site["file"], site["line"], site["function"]) == ("/home/u/train.py", 12, "step")
    assert gemm["site_id"] == site["site_id"]
    assert events["mark"]["duration_ns"] == 0
    assert json.loads(events["mark"]["attributes"]) == {"d": {"k": 1.5}}
    tracks = {row["track_id"]: row for row in run.rows("tracks")}
    stream = tracks[gemm["track_id"]]
    assert (stream["kind"], stream["device_index"], stream["thread_id"]) == ("stream", 1, 7)
    thread = tracks[launch["track_id"]]
    assert (thread["process_id"], thread["thread_id"], thread["label"], thread["process_name"]) == (
        77,
        78,
        "main",
        "python",
    )
    assert {(row["source_id"], row["target_id"], row["kind"]) for row in run.rows("edges")} == {
        (launch["event_id"], gemm["event_id"], "launch"),
        (launch["event_id"], gemm["event_id"], "flow"),
    }


def test_counters_that_add_up(tmp_path):
    values = [
        packet((11, message((9, COUNTER), (11, 4), (30, value))), time=time)
        for time, value in ((1, 5), (2, 7), (3, -4))
    ]
    run = imported(tmp_path, *TRACKS, *values)
    assert [(row["timestamp_ns"], row["value"], row["unit"]) for row in run.rows("counters")] == [
        (1, 5.0, "bytes"),
        (2, 12.0, "bytes"),
        (3, 8.0, "bytes"),
    ]


def test_steps_open_slices_stray_ends_and_other_packets(tmp_path):
    run = imported(
        tmp_path,
        *TRACKS,
        slice_begin(10, 2, "ProfilerStep#4"),
        slice_begin(20, 2, "open", (4, annotation("n", text="x"))),
        slice_end(15, 3),
        slice_begin(40, 2, "inner"),
        slice_end(60, 2),
        packet((1, message((1, 0))), time=61),
    )
    events = {row["name"]: row for row in run.rows("events")}
    assert events["open"]["duration_ns"] == 40
    assert json.loads(events["open"]["attributes"]) == {"n": "x", "unfinished": True}
    assert events["inner"]["parent_id"] == events["open"]["event_id"]
    assert [(row["step"], row["duration_ns"]) for row in run.rows("steps")] == [(4, 50)]
    assert [row["reason"] for row in run.rows("quarantine")] == ["end_without_begin"]
    assert run.health()["unread_packets"] == 1


def test_an_expanding_packet_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("explorer.collectors.perfetto.packets.MAX_UNPACKED", 10_000)
    path = tmp_path / "x.pftrace"
    path.write_bytes(message((1, message((50, zlib.compress(b"\x0a\x00" * 50_000))))))
    with pytest.raises(InputError, match="decompression bomb"):
        import_trace(path, tmp_path / "run")


def test_compressed_packets(tmp_path):
    inner = message(*((1, value) for value in (*TRACKS, slice_begin(10, 2, "a"), slice_end(30, 2))))
    path = tmp_path / "x.pftrace"
    path.write_bytes(message((1, message((50, zlib.compress(inner))))))
    run = Imported(path, tmp_path)
    run.check_counts()
    assert [(row["name"], row["duration_ns"]) for row in run.rows("events")] == [("a", 20)]


def test_a_cut_trace_keeps_its_beginning(tmp_path):
    packets = [value for n in range(100) for value in (slice_begin(n * 10, 2, "s"), slice_end(n * 10 + 5, 2))]
    path = write(tmp_path / "x.pftrace", *TRACKS, *packets)
    path.write_bytes(path.read_bytes()[:-700])
    run = Imported(path, tmp_path)
    run.check_counts()
    assert 50 < len(run.rows("events")) < 100
    assert run.report.exit_code == 4


def test_a_trace_without_track_events_is_refused(tmp_path):
    path = write(tmp_path / "x.pftrace", packet((1, message((1, 0))), time=1))
    with pytest.raises(InputError):
        import_trace(path, tmp_path / "run")


@settings(max_examples=40)
@given(data=st.data())
def test_flipped_bytes_never_crash(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("flip")
    packets = [value for n in range(10) for value in (slice_begin(n * 10, 2, "s"), slice_end(n * 10 + 5, 2))]
    path = write(folder / "x.pftrace", *TRACKS, *packets)
    broken = bytearray(path.read_bytes())
    for place in data.draw(st.lists(st.integers(0, len(broken) - 1), min_size=1, max_size=6)):
        broken[place] ^= data.draw(st.integers(1, 255))
    path.write_bytes(bytes(broken))
    try:
        run = Imported(path, folder)
    except InputError:
        return
    run.check_counts()
    assert len(run.rows("events")) <= 20
