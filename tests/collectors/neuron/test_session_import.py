"""System and device profiles of two processes: ranks, clocks, launches, shared executions."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from explorer.analysis.run import Run, open_run
from explorer.collectors.neuron.session_import import import_session
from tests.neuron_fixture.builder import ProfileBuilder
from tests.neuron_fixture.session import (
    HOST_EPOCH,
    PROCESSES,
    STEP_NS,
    Session,
    plant_session,
    write_session,
)
from tests.neuron_fixture.story import DEVICE_EPOCH


@pytest.fixture(scope="module", params=[True, False], ids=["sync_points", "pairing"])
def imported(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Session, Run, bool]:
    folder = tmp_path_factory.mktemp("session")
    session = write_session(folder / "data", sync_points=request.param)
    result = import_session(folder / "data", folder / "run")
    assert result.ranks == [0, 1]
    return session, open_run(result.directory), request.param


def test_each_process_is_a_rank_with_its_device(imported: tuple[Session, Run, bool]) -> None:
    _, run, _ = imported
    rows = run.engine.sql("SELECT rank, device FROM devices ORDER BY rank").rows()
    assert rows == [{"rank": 0, "device": "neuron:0"}, {"rank": 1, "device": "neuron:1"}]


def test_device_times_lie_on_the_host_clock(imported: tuple[Session, Run, bool]) -> None:
    _, run, _ = imported
    rows = run.engine.sql(
        """SELECT e.rank, min(e.start_ns) AS first FROM events e
           WHERE e.category IN ('instruction', 'dma') GROUP BY e.rank ORDER BY e.rank"""
    ).rows()
    assert [row["first"] for row in rows] == [HOST_EPOCH + 300_000, HOST_EPOCH + 310_000]
    offsets = run.engine.sql(
        "SELECT DISTINCT rank, clock_offset_ns FROM neuron.EventOffsets ORDER BY rank"
    ).rows()
    assert [row["clock_offset_ns"] for row in offsets] == [
        HOST_EPOCH + 300_000 - DEVICE_EPOCH,
        HOST_EPOCH + 310_000 - DEVICE_EPOCH,
    ]


def test_how_the_clocks_were_joined_is_said(imported: tuple[Session, Run, bool]) -> None:
    _, run, sync = imported
    kinds = [
        row["kind"] for row in run.engine.sql("SELECT kind FROM health WHERE kind LIKE '%clock%'").rows()
    ]
    # Two equal executions on the host fit the one on the device: the choice is not certain.
    assert kinds == ([] if sync else ["neuron_clock_paired"] * 2)


def test_steps_come_from_the_framework(imported: tuple[Session, Run, bool]) -> None:
    _, run, _ = imported
    rows = run.engine.sql("SELECT rank, step, start_ns, duration_ns FROM steps ORDER BY ALL").rows()
    assert [(row["rank"], row["step"], row["start_ns"]) for row in rows] == [
        (rank, step, HOST_EPOCH + 10_000 * rank + step * STEP_NS) for rank in (0, 1) for step in (0, 1)
    ]
    assert {row["duration_ns"] for row in rows} == {STEP_NS - 1000}


def test_instructions_know_launch_op_and_step(imported: tuple[Session, Run, bool]) -> None:
    session, run, _ = imported
    rows = run.engine.sql(
        """SELECT e.rank, e.step, l.name AS launch, o.name AS op, count(*) AS n FROM events e
           LEFT JOIN events l ON l.rank = e.rank AND l.event_id = e.launch_id
           LEFT JOIN events o ON o.rank = e.rank AND o.event_id = e.op_id
           WHERE e.category = 'instruction' GROUP BY ALL ORDER BY e.rank"""
    ).rows()
    counts = [len(story.builder.rows["Instruction"]) for story in session.stories.values()]
    assert rows == [
        {"rank": rank, "step": 0, "launch": "nrt_execute", "op": "aten::mm", "n": counts[rank]}
        for rank in (0, 1)
    ]


def test_an_execution_without_a_device_profile_is_the_work_itself(
    imported: tuple[Session, Run, bool],
) -> None:
    _, run, _ = imported
    rows = run.engine.sql(
        "SELECT step, category FROM events WHERE name = 'nc_exec_running' AND rank = 0 ORDER BY step"
    ).rows()
    assert [(row["step"], row["category"]) for row in rows] == [(0, "annotation"), (1, "kernel")]


def test_fused_ops_share_their_execution_in_equal_parts(imported: tuple[Session, Run, bool]) -> None:
    _, run, _ = imported
    rows = run.engine.sql(
        """SELECT s.file, s.line, l.share FROM event_lines l JOIN events e USING (rank, event_id)
           JOIN sites s ON s.site_id = l.site_id
           WHERE e.name = 'nc_exec_running' AND e.rank = 1 AND e.step = 1 ORDER BY s.line"""
    ).rows()
    assert [(row["file"], row["line"]) for row in rows] == [("model.py", 14), ("model.py", 40)]
    assert [row["share"] for row in rows] == pytest.approx([2 / 3, 1 / 3])


def test_instructions_without_debug_information_take_the_ops_of_their_execution(
    imported: tuple[Session, Run, bool],
) -> None:
    _, run, _ = imported
    rows = run.engine.sql(
        """SELECT e.rank, s.line, e.attribution, sum(l.share) AS n FROM event_lines l JOIN events e USING (rank, event_id)
           JOIN sites s ON s.site_id = l.site_id WHERE e.name = 'IOTA' GROUP BY ALL ORDER BY ALL"""
    ).rows()
    assert [(row["rank"], row["line"], row["attribution"]) for row in rows] == [
        (0, 14, "flow"),
        (1, 14, "flow"),
        (1, 40, "flow"),
    ]
    assert [row["n"] for row in rows] == pytest.approx([32, 32 * 2 / 3, 32 / 3])


def test_shares_of_every_event_sum_to_one(imported: tuple[Session, Run, bool]) -> None:
    _, run, _ = imported
    rows = run.engine.sql(
        "SELECT rank, event_id, sum(share) AS total FROM event_lines GROUP BY ALL HAVING abs(total - 1) > 1e-9"
    ).rows()
    assert rows == []


def test_host_series_become_counters(imported: tuple[Session, Run, bool]) -> None:
    _, run, _ = imported
    rows = run.engine.sql(
        "SELECT name, list(value ORDER BY timestamp_ns) AS x FROM counters WHERE rank = 0 AND name LIKE 'CpuUsage%' GROUP BY name"
    ).rows()
    assert rows == [{"name": "CpuUsage.util_percent", "x": [0.0, 25.0, 50.0]}]


@pytest.mark.parametrize("mode", ["trusted", "sandbox"])
def test_every_rank_keeps_its_rows_of_the_system_tables(
    imported: tuple[Session, Run, bool], mode: str
) -> None:
    session, run, _ = imported
    ask = run.engine.sql if mode == "trusted" else run.sql
    for table in ("SystemProfileEvents", "DeviceProfileList"):
        rows = ask(
            f"SELECT rank, process_id, count(*) AS n FROM neuron.{table} GROUP BY ALL ORDER BY ALL"
        ).rows()
        planted = Counter(row["process_id"] for row in session.system.rows[table])
        assert [tuple(row.values()) for row in rows] == [
            (rank, process, planted[process]) for rank, process in enumerate(PROCESSES)
        ]
    ids = ask("SELECT id FROM neuron.SystemProfileEvents ORDER BY id").rows()
    assert [row["id"] for row in ids] == sorted(
        row["id"] for row in session.system.rows["SystemProfileEvents"]
    )
    flows = ask("SELECT count(*) AS n FROM neuron.SystemProfileEvents WHERE len(flow_id) > 0").rows()[0]["n"]
    assert flows == sum(bool(row["flow_id"]) for row in session.system.rows["SystemProfileEvents"])
    for table in ("CpuUsage", "HostMemUsage", "SystemProfileMetadata"):
        for rank in range(len(PROCESSES)):
            (row,) = ask(f"SELECT count(*) AS n FROM neuron.{table} WHERE rank = {rank}").rows()
            assert row["n"] == len(session.system.rows[table])
    second = open_run(run.directory, ranks=[1])
    assert second.sql("SELECT DISTINCT process_id FROM neuron.SystemProfileEvents").rows() == [
        {"process_id": PROCESSES[1]}
    ]


def test_rows_of_no_rank_stay_with_the_first(tmp_path: Path) -> None:
    session = plant_session()
    session.system.row(
        "DeviceProfileList",
        device_profile_name="gone",
        instance_id="i-made-up",
        process_id=999,
        nc_id=7,
        session_id=0,
    )
    session.system.row("CpuUsage", timestamp=HOST_EPOCH, util_percent=1.0, cpu_id="0", instance_id="i-other")
    target = tmp_path / "data" / "profiles" / "global"
    session.system.write(target, split={"SystemProfileEvents": 3})
    for story in session.stories.values():
        story.builder.write(target)
    run = open_run(import_session(tmp_path / "data", tmp_path / "run").directory)
    rows = run.sql("SELECT rank, process_id FROM neuron.DeviceProfileList ORDER BY ALL").rows()
    assert [tuple(row.values()) for row in rows] == [(0, 500), (0, 999), (1, 600)]
    other = run.sql(
        "SELECT rank, count(*) AS n FROM neuron.CpuUsage WHERE instance_id = 'i-other' GROUP BY ALL"
    ).rows()
    assert other == [{"rank": 0, "n": 1}]


def test_rank_numbers_fall_back_to_order(tmp_path: Path) -> None:
    write_session(tmp_path / "data", worker_gids=False)
    result = import_session(tmp_path / "data", tmp_path / "run")
    assert result.ranks == [0, 1]
    run = open_run(result.directory)
    assert {m.attributes["neuron"]["rank_from"] for m in run.reader.manifests.values()} == {"order"}


def test_forward_passes_of_a_serving_engine_are_steps(tmp_path: Path) -> None:
    system = ProfileBuilder("system")
    for number, name in enumerate(
        (
            "execute_context_1(64)_generation_0(0)",
            "execute_context_0(0)_generation_1(1)",
            "execute_context_0(0)_generation_1(1)",
            "execute_new_3_cached_4",
        )
    ):
        system.timed(
            "SystemProfileEvents", HOST_EPOCH + number * 1000, 900, id=number, name=name, trace_event_source="framework",
            instance_id="i", process_id=5, thread_id=1,
        )  # fmt: skip
    system.write(tmp_path / "data")
    run = open_run(import_session(tmp_path / "data", tmp_path / "run").directory)
    rows = run.sql("SELECT step, phase, duration_ns FROM steps ORDER BY step").rows()
    assert [(row["step"], row["phase"]) for row in rows] == [
        (0, "prefill"),
        (1, "decode"),
        (2, "decode"),
        (3, "prefill"),
    ]
    passes = run.view("inference_steps").rows()
    assert [row["generation_tokens"] for row in passes] == [0, 1, 1, None]
    assert [row["generation_requests"] for row in passes] == [0, 1, 1, 4]
    assert [row["phase"] for row in passes] == ["prefill", "decode", "decode", "prefill"]
