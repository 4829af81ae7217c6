"""Linking of collected events: launches, ops, lines, forward lines, steps, spilling to disk."""

from __future__ import annotations

import pytest

from explorer.collectors.event_table import EventTable
from explorer.collectors.track_table import TrackTable
from explorer.store.reader import RunReader
from explorer.store.writer import RunWriter


def build(folder, fill, steps=(), **settings):
    with RunWriter(folder) as writer:
        tracks = TrackTable()
        table = EventTable(writer, tracks, **settings)
        fill(tracks, table)
        count = table.finish(steps)
        tracks.write(writer)
    reader = RunReader(writer.directory)
    rows = {row["event_id"]: row for row in reader.read("events").to_pylist()}
    assert len(rows) == count
    return rows, reader, table


def add(table, track, category, name, start, duration, **more):
    return table.add(
        track_id=track, category=category, name=name, start_ns=start, duration_ns=duration, **more
    )


def test_a_kernel_takes_launch_op_line_and_step_of_its_call(tmp_path):
    def fill(tracks, table):
        thread, stream = tracks.thread(1, 2), tracks.stream("cuda", 0, 7)
        line = {"site_id": 11, "stack_id": 12, "attribution": "stack", "precision": "exact"}
        add(table, thread, "op", "aten::mm", 100, 50, **line)
        add(table, thread, "runtime", "launch", 110, 5, link=9)
        add(table, stream, "kernel", "gemm", 300, 40, link=9)
        add(table, stream, "kernel", "stray", 400, 40, link=8)

    rows, reader, table = build(tmp_path / "run", fill, steps=[(4, 100, 200), (5, 290, 500)])
    gemm, stray = rows[2], rows[3]
    assert (gemm["launch_id"], gemm["op_id"], gemm["step"]) == (1, 0, 4)
    assert (gemm["site_id"], gemm["stack_id"], gemm["attribution"], gemm["precision"]) == (
        11,
        12,
        "flow",
        "exact",
    )
    assert (rows[1]["parent_id"], rows[1]["op_id"], rows[1]["attribution"]) == (0, 0, "stack")
    assert rows[0]["self_ns"] == 45
    assert rows[0]["op_id"] is None
    assert (stray["launch_id"], stray["site_id"], stray["attribution"], stray["step"]) == (
        None,
        None,
        "none",
        5,
    )
    assert [(e["source_id"], e["target_id"], e["kind"]) for e in reader.read("edges").to_pylist()] == [
        (1, 2, "launch")
    ]
    assert (table.device_work, table.unlinked_work) == (2, 1)


def test_backward_work_is_charged_to_the_forward_line(tmp_path):
    def fill(tracks, table):
        main, autograd, stream = tracks.thread(1, 1), tracks.thread(1, 2), tracks.stream("cuda", 0, 7)
        forward = add(table, main, "op", "aten::mm", 0, 10, site_id=5, attribution="stack", precision="exact")
        backward = add(table, autograd, "op", "MmBackward0", 100, 20)
        add(table, autograd, "op", "aten::t", 101, 10)
        add(table, autograd, "runtime", "launch", 102, 2, link=1)
        add(table, stream, "kernel", "gemm", 200, 5, link=1)
        table.forward[backward] = forward

    rows, _, _ = build(tmp_path / "run", fill)
    assert rows[1]["forward_id"] == 0
    for event in (1, 2, 3, 4):
        assert (rows[event]["site_id"], rows[event]["attribution"]) == (5, "forward")
    assert rows[4]["op_id"] == 2


def test_phases_come_from_the_ranges_around(tmp_path):
    def fill(tracks, table):
        thread, stream = tracks.thread(1, 1), tracks.stream("cuda", 0, 7)
        forward = add(table, thread, "op", "aten::mm", 0, 10)
        backward = add(table, thread, "op", "MmBackward0", 20, 10)
        add(table, thread, "runtime", "launch", 22, 2, link=1)
        add(table, thread, "annotation", "Optimizer.step#SGD.step", 40, 20)
        add(table, thread, "op", "aten::add_", 45, 5)
        add(table, thread, "data", "enumerate(DataLoader)#x", 70, 5)
        add(table, thread, "op", "aten::other", 90, 5)
        add(table, stream, "kernel", "gemm", 100, 5, link=1)
        table.forward[backward] = forward

    rows, _, _ = build(tmp_path / "run", fill)
    phases = [rows[number]["phase"] for number in range(8)]
    assert phases == ["forward", "backward", "backward", "optimizer", "optimizer", "data", None, "backward"]


def test_a_call_of_another_thread_works_for_its_op(tmp_path):
    def fill(tracks, table):
        main, queue, stream = tracks.thread(1, 1), tracks.thread(1, 2), tracks.stream("npu", 0, 2)
        op = add(table, main, "op", "aten::mm", 0, 10, site_id=5, attribution="stack", precision="exact")
        call = add(table, queue, "runtime", "launch", 50, 5, link=3)
        add(table, stream, "kernel", "MatMul", 60, 5, link=3)
        table.responsible[call] = op

    rows, _, _ = build(tmp_path / "run", fill)
    assert (rows[1]["op_id"], rows[2]["op_id"], rows[2]["site_id"]) == (0, 0, 5)


@pytest.mark.parametrize("memory_bytes", [1, 1 << 30])
def test_spilled_rows_come_back_whole(tmp_path, memory_bytes):
    def fill(tracks, table):
        thread = tracks.thread(1, 1)
        for low in range(0, 3000, 1000):
            table.extend(
                {
                    "track_id": [thread] * 1000,
                    "category": ["op"] * 1000,
                    "name": [f"op {number % 7}" for number in range(low, low + 1000)],
                    "start_ns": list(range(low, low + 1000)),
                    "duration_ns": [1] * 1000,
                }
            )
            table.reserve()

    rows, _, _ = build(tmp_path / "run", fill, memory_bytes=memory_bytes)
    assert len(rows) == 3000
    assert sorted(set(range(3003)) - set(rows)) == [1000, 2001, 3002]
    assert rows[2002]["name"] == f"op {2000 % 7}"
    assert rows[2002]["start_ns"] == 2000


def test_unknown_columns_are_refused(tmp_path):
    with RunWriter(tmp_path / "run") as writer:
        table = EventTable(writer, TrackTable())
        with pytest.raises(TypeError, match="colour"):
            table.add(track_id=0, start_ns=0, duration_ns=0, colour=1)
