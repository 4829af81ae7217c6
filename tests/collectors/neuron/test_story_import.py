"""The planted story through the importer: every number is known from the generator, not from our SQL."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from explorer.analysis.run import Run, open_run
from explorer.collectors.neuron.session_import import import_session
from explorer.model.neuron_schema import official_tables
from explorer.store.reader import RunReader
from tests.neuron_fixture.builder import arrow_schema
from tests.neuron_fixture.story import SMALL_DMAS, TILES, Story, write_story


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> tuple[Story, Path, Run]:
    folder = tmp_path_factory.mktemp("story")
    story, source = write_story(folder / "source")
    result = import_session(folder / "source", folder / "run")
    return story, source, open_run(result.directory)


def test_official_files_are_kept_byte_for_byte(imported: tuple[Story, Path, Run]) -> None:
    _, source, run = imported
    reader = RunReader(run.directory)
    kept = {Path(path).read_bytes() for table in reader.extra_tables for path in reader.files(table)}
    for path in source.glob("*.parquet"):
        assert path.read_bytes() in kept


@pytest.mark.parametrize("mode", ["trusted", "sandbox"])
def test_every_official_table_can_be_queried(imported: tuple[Story, Path, Run], mode: str) -> None:
    story, _, run = imported
    ask = run.engine.sql if mode == "trusted" else run.sql
    for name, table in official_tables().items():
        answer = ask(f"SELECT * FROM neuron.{name}")
        assert answer.columns[: len(table.columns)] == list(table.columns)
        assert answer.columns[-2:] == ["rank", "profile"]
        assert len(answer) == len(story.builder.rows.get(name, []))
    row = ask("SELECT min(rank) AS low, max(profile) AS name FROM neuron.Instruction").rows()[0]
    assert row == {"low": 0, "name": "story"}


def test_each_line_gets_the_time_that_was_planted(imported: tuple[Story, Path, Run]) -> None:
    story, _, run = imported
    expected: dict[str, float] = defaultdict(float)
    for line, time_ns in story.line_ns.items():
        for part in line.split(",") if line else []:
            expected[part] += time_ns / len(line.split(","))
    found = run.engine.sql(
        """SELECT s.file || ':' || s.line AS line, sum(e.duration_ns * l.share) AS ns
           FROM event_lines l JOIN events e USING (rank, event_id) JOIN sites s ON s.site_id = l.site_id
           WHERE e.category = 'instruction' GROUP BY 1"""
    ).rows()
    assert {row["line"]: row["ns"] for row in found} == expected


def test_time_without_a_line_is_said(imported: tuple[Story, Path, Run]) -> None:
    story, _, run = imported
    bare = run.engine.sql(
        "SELECT sum(duration_ns) AS ns FROM events WHERE category = 'instruction' AND site_id IS NULL"
    ).rows()
    assert bare[0]["ns"] == story.line_ns[""]
    (row,) = run.engine.sql("SELECT count, message FROM health WHERE kind = 'neuron_unattributed'").rows()
    assert row["count"] == story.line_ns[""]
    assert "GpSimd" in row["message"]


@pytest.mark.parametrize(
    ("opcode", "line", "function", "frames"),
    [
        ("LDWEIGHTS", "/opt/app/model.py:14", "Block.forward", 3),
        ("TENSOR_COPY", "/opt/app/model.py:15", "Block.forward", 2),
        ("ACTIVATE", "kernels/attention.py:47", "", 1),
        ("CC_TRIGGER", "/opt/app/model.py:25", "", 1),
    ],
)
def test_chain_of_debug_information(
    imported: tuple[Story, Path, Run], opcode: str, line: str, function: str, frames: int
) -> None:
    _, _, run = imported
    rows = run.engine.sql(
        """SELECT DISTINCT s.file || ':' || s.line AS line, s.function, e.attribution, e.precision,
                  (SELECT count(*) FROM stacks k WHERE k.stack_id = e.stack_id) AS frames
           FROM events e JOIN sites s USING (site_id) WHERE e.name = $1""",
        [opcode],
    ).rows()
    assert rows == [
        {
            "line": line,
            "function": function,
            "attribution": "debug_info",
            "precision": "exact",
            "frames": frames,
        }
    ]


def test_kernel_frames_win_over_the_plain_location(imported: tuple[Story, Path, Run]) -> None:
    _, _, run = imported
    rows = run.engine.sql(
        """SELECT k.depth, s.function, s.line FROM stacks k JOIN sites s USING (site_id)
           WHERE k.stack_id IN (SELECT e.stack_id FROM events e JOIN sites x USING (site_id) WHERE x.line = 42)
           ORDER BY k.depth"""
    ).rows()
    assert [(row["function"], row["line"]) for row in rows] == [
        ("attention_kernel", 42),
        ("flash_attention", 88),
    ]


def test_library_frames_leave_the_line_to_user_code(imported: tuple[Story, Path, Run]) -> None:
    _, _, run = imported
    rows = run.engine.sql("SELECT file, is_user FROM sites WHERE function = 'linear'").rows()
    assert rows == [{"file": "torch/nn/functional.py", "is_user": False}]


def test_transfers_take_the_line_of_the_instruction_they_feed(imported: tuple[Story, Path, Run]) -> None:
    _, _, run = imported
    rows = run.engine.sql(
        """SELECT t.thread_name AS queue, s.line, e.attribution, e.precision, count(*) AS n
           FROM events e JOIN tracks t USING (rank, track_id) LEFT JOIN sites s USING (site_id)
           WHERE e.category = 'dma' AND t.label LIKE '%core 0%' GROUP BY ALL ORDER BY ALL"""
    ).rows()
    known = {
        (row["queue"].split(".")[0], row["line"]): row["n"] for row in rows if row["attribution"] == "flow"
    }
    reloads = TILES // 3
    assert known == {
        ("qPoolDynamic0", 42): 16,
        ("qSpillReload0", 14): reloads,
        ("qSpillSave0", 15): reloads,
        ("qSyncIO0", 14): TILES - reloads,
    }
    assert {row["precision"] for row in rows if row["attribution"] == "flow"} == {"inferred"}
    unknown = sum(row["n"] for row in rows if row["attribution"] == "none")
    assert unknown == 16 * (SMALL_DMAS - 1) + reloads


def test_collective_has_group_size_and_the_line_that_triggered_it(imported: tuple[Story, Path, Run]) -> None:
    _, _, run = imported
    rows = run.engine.sql(
        """SELECT c.operation, c.dtype, c.element_count, c.size_bytes, c.group_size, s.line, e.attribution
           FROM collectives c JOIN events e USING (rank, event_id) JOIN sites s USING (site_id)"""
    ).rows()
    assert rows == [
        {
            "operation": "all_reduce",
            "dtype": "bfloat16",
            "element_count": 1 << 20,
            "size_bytes": 2 << 20,
            "group_size": 4,
            "line": 25,
            "attribution": "flow",
        }
    ]


def test_one_track_for_each_engine_of_each_physical_core(imported: tuple[Story, Path, Run]) -> None:
    _, _, run = imported
    rows = run.engine.sql(
        "SELECT label, kind, device_type, device_index FROM tracks WHERE kind = 'engine'"
    ).rows()
    assert sorted(row["label"] for row in rows) == [
        f"{engine} (core {core})" for engine in ("GpSimd", "Scalar", "Tensor", "Vector") for core in (0, 1)
    ]
    assert {(row["device_type"], row["device_index"]) for row in rows} == {("neuron", 0)}


def test_flows_become_edges_between_events(imported: tuple[Story, Path, Run]) -> None:
    story, _, run = imported
    rows = run.engine.sql(
        """SELECT x.kind, s.category AS source, t.category AS target, count(*) AS n FROM edges x
           JOIN events s ON s.rank = x.rank AND s.event_id = x.source_id
           JOIN events t ON t.rank = x.target_rank AND t.event_id = x.target_id GROUP BY ALL ORDER BY ALL"""
    ).rows()
    assert [(row["kind"], row["source"], row["target"], row["n"]) for row in rows] == [
        ("data", "instruction", "dma", 16),
        ("data", "instruction", "instruction", 2 * TILES),
        ("semaphore", "dma", "instruction", 2 * (TILES + 16)),
    ]
    assert sum(row["n"] for row in rows) == len(story.builder.rows["Flow"])


def test_events_and_official_rows_join_by_offset(imported: tuple[Story, Path, Run]) -> None:
    story, _, run = imported
    row = run.engine.sql(
        """SELECT count(*) AS n, bool_and(e.name = i.opcode AND e.duration_ns = i.duration_ns) AS same
           FROM neuron.Instruction i JOIN neuron.EventOffsets o
             ON o.rank = i.rank AND o.profile = i.profile AND o.table_name = 'Instruction'
           JOIN events e ON e.rank = i.rank AND e.event_id = i.id + o.id_offset"""
    ).rows()[0]
    assert row == {"n": len(story.builder.rows["Instruction"]), "same": True}


def test_counters_errors_and_warnings(imported: tuple[Story, Path, Run]) -> None:
    _, _, run = imported
    rows = run.engine.sql(
        "SELECT name, unit, list(value ORDER BY timestamp_ns) AS x FROM counters GROUP BY ALL ORDER BY ALL"
    ).rows()
    assert [(row["name"], row["unit"], row["x"]) for row in rows] == [
        ("DmaUsage.current_throughput", "bytes/s", [0.0, 1e9, 2e9, 3e9, 4e9]),
        ("DmaUsage.total_transfer_bytes", "bytes", [0.0, 1000.0, 2000.0, 3000.0, 4000.0]),
        ("PendingDma.value", "count", [0.0, 1.0, 2.0, 3.0, 4.0]),
        # Summary says that this profile's percent columns hold fractions, so they are scaled.
        ("SbufUsage.avg_util_percent", "percent", [0.0, 12.5, 25.0, 37.5, 50.0]),
    ]
    kinds = {
        row["kind"]: row["severity"] for row in run.engine.sql("SELECT kind, severity FROM health").rows()
    }
    assert kinds["neuron_device_error"] == "error"
    assert kinds["neuron_warning"] == "warning"


def test_devices_take_their_peaks_from_the_profile(imported: tuple[Story, Path, Run]) -> None:
    import json

    _, _, run = imported
    (row,) = run.engine.sql("SELECT * FROM devices").rows()
    assert (row["device"], row["vendor"], row["unit_count"]) == ("neuron:0", "aws", 2)
    peak = json.loads(row["peak_flops"])["bfloat16"]
    assert peak == pytest.approx(2 * 128 * 128 * 2 * 2.4e9, rel=1e-6)


def test_counts_add_up(imported: tuple[Story, Path, Run]) -> None:
    story, _, run = imported
    manifest = run.reader.manifests[0]
    neuron, counts = manifest.attributes["neuron"], manifest.counts
    assert neuron["rows"] == {table: len(rows) for table, rows in story.builder.rows.items()}
    assert neuron["events"]["instruction"] == len(story.builder.rows["Instruction"])
    assert neuron["events"]["dma"] == len(story.builder.rows["DmaPacketAggregated"])
    assert counts["source_total"] == sum(len(rows) for rows in story.builder.rows.values())
    assert counts["events"] == sum(part.rows for part in manifest.parts if part.table == "events")
    assert counts["source_total"] + counts["derived"] == sum(
        rows for name, rows in counts.items() if name not in ("source_total", "derived")
    )


def test_fixture_follows_the_official_schema(imported: tuple[Story, Path, Run]) -> None:
    _, source, _ = imported
    for path in source.glob("*.parquet"):
        table = path.stem.split("_")[0]
        assert pq.read_schema(path).remove_metadata().equals(arrow_schema(table))


def test_coverage_of_kernel_source(imported: tuple[Story, Path, Run]) -> None:
    story, _, run = imported
    kernels = sum(ns for line, ns in story.line_ns.items() if line.startswith("kernels/"))
    assert kernels < 0.5 * sum(story.line_ns.values())
    rows = run.sql("SELECT count FROM health WHERE kind = 'neuron_nki_coverage'").rows()
    assert rows == [{"count": kernels}]
