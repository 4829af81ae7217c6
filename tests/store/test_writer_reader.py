"""The run directory: what is written is read back, and only what a manifest lists exists."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from explorer.model.errors import InputError, UsageError
from explorer.model.schema import METADATA_KEY
from explorer.model.tables import TABLES
from explorer.store.reader import RunReader, is_run
from explorer.store.writer import RunWriter


def events(*starts: int) -> dict[str, list[object]]:
    count = len(starts)
    return {
        "event_id": list(range(count)),
        "track_id": [1] * count,
        "category": ["op"] * count,
        "name": [f"e{start}" for start in starts],
        "start_ns": list(starts),
        "duration_ns": [1] * count,
        "self_ns": [1] * count,
    }


def test_rows_come_back_sorted_and_complete(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "run") as writer:
        writer.write("events", events(5, 3, 9))
    table = RunReader(tmp_path / "run").read("events")
    assert table.column("start_ns").to_pylist() == [3, 5, 9]
    assert table.column("name").to_pylist() == ["e3", "e5", "e9"]
    assert table.column_names == list(TABLES["events"].names)
    assert table.column("site_id").null_count == 3
    assert table.column("rank").to_pylist() == [0, 0, 0]


def test_paths_that_look_like_globs_and_partitions(tmp_path: Path) -> None:
    directory = tmp_path / "exp[1]" / "rank=9" / "a*b"
    with RunWriter(directory, rank=3) as writer:
        writer.write("events", events(1))
    table = RunReader(directory).read("events")
    assert table.column("rank").to_pylist() == [3]


def test_absent_tables_are_typed_and_empty(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "run"):
        pass
    reader = RunReader(tmp_path / "run")
    for name, table in TABLES.items():
        empty = reader.read(name)
        assert empty.num_rows == 0
        assert empty.schema.equals(table.arrow_schema(), check_metadata=False), name


def test_a_part_exists_when_its_manifest_lists_it(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path / "run")
    writer.write("events", events(1, 2))
    writer.commit()
    writer.write("events", events(3))  # never committed: the process dies here
    reader = RunReader(tmp_path / "run")
    assert reader.read("events").num_rows == 2
    assert not reader.manifests[0].finished
    assert len(list((tmp_path / "run" / "events" / "rank=0").iterdir())) == 2


def test_a_finished_run_is_never_overwritten(tmp_path: Path) -> None:
    for _ in range(3):
        with RunWriter(tmp_path / "run") as writer:
            writer.write("events", events(1))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run", "run-2", "run-3"]
    with RunWriter(tmp_path / "run", rank=1) as writer:
        assert writer.directory == str(tmp_path / "run")  # another rank joins the run
    assert RunReader(tmp_path / "run").ranks == [0, 1]


def test_an_unfinished_run_is_continued_in_place(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path / "run")
    writer.write("events", events(1))
    writer.commit()
    del writer
    assert RunWriter(tmp_path / "run").directory == str(tmp_path / "run")


def test_an_exception_publishes_nothing_more(tmp_path: Path) -> None:
    def program() -> None:
        with RunWriter(tmp_path / "run") as writer:
            writer.write("events", events(1))
            raise RuntimeError("boom")

    with pytest.raises(RuntimeError, match="boom"):
        program()
    assert not is_run(tmp_path / "run")


def test_dimension_rows_repeat_but_read_once(tmp_path: Path) -> None:
    site = {"site_id": 7, "file": "a.py", "line": 1, "function": "f", "is_user": True}
    for rank in (0, 1):
        with RunWriter(tmp_path / "run", rank=rank) as writer:
            writer.write("sites", [site, site])
            writer.write("sites", [site])
    assert RunReader(tmp_path / "run").read("sites").to_pylist() == [{**site, "end_line": None, "code": None}]


def test_columns_unknown_to_us_are_kept_and_missing_ones_are_null(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "run") as writer:
        part = writer.write("devices", [{"device": "cpu", "name": "x"}])
    path = tmp_path / "run" / part.path
    table = (
        pq.read_table(path, partitioning=None)
        .drop_columns(["vendor"])
        .append_column("from_the_future", [[1.5]])
    )
    pq.write_table(table, path)
    row = RunReader(tmp_path / "run").read("devices").to_pylist()[0]
    assert row["vendor"] is None
    assert row["from_the_future"] == 1.5


def test_files_carry_their_documentation(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "run") as writer:
        part = writer.write("events", events(1))
    document = json.loads(pq.read_metadata(tmp_path / "run" / part.path).metadata[METADATA_KEY])
    assert document["table"] == "events"
    assert document["columns"]["start_ns"] == {"doc": "Start time", "unit": "ns", "nullable": False}


def test_manifest_knows_the_time_range(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "run") as writer:
        writer.write("events", events(5, 3, 9))
    part = RunReader(tmp_path / "run").manifests[0].parts[0]
    assert (part.rows, part.start_ns, part.end_ns) == (3, 3, 10)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({"event_id": [1]}, "is missing"),
        ({**events(1), "nonsense": [1]}, "no column nonsense"),
        ({**events(1), "name": [None]}, "holds 1 nulls"),
    ],
)
def test_wrong_rows_are_refused(tmp_path: Path, rows: dict[str, list[object]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RunWriter(tmp_path / "run").write("events", rows)


def test_dictionary_encoded_strings_are_plain_when_read(tmp_path: Path) -> None:
    rows = {**events(1, 2), "name": pa.array(["a", "a"]).dictionary_encode()}
    with RunWriter(tmp_path / "run") as writer:
        writer.write("events", rows)
    assert RunReader(tmp_path / "run").read("events").schema.field("name").type == pa.string()


def test_quarantine_and_health(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "run") as writer:
        writer.quarantine({"ph": "X", "dur": -1}, "negative_duration", 17)
        writer.health("negative_duration", "warning", 1, "One event ends before it starts.")
    reader = RunReader(tmp_path / "run")
    assert reader.read("quarantine").to_pylist() == [
        {"rank": 0, "row": '{"ph": "X", "dur": -1}', "reason": "negative_duration", "offset": 17}
    ]
    assert reader.read("health").column("severity").to_pylist() == ["warning"]


def test_what_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        RunReader(tmp_path / "nothing")
    with pytest.raises(InputError, match="is not a run"):
        RunReader(tmp_path)
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests" / "rank-0.json").write_text("{broken")
    with pytest.raises(InputError, match="cannot be read"):
        RunReader(tmp_path)
    (tmp_path / "manifests" / "rank-0.json").write_text('{"schema_version": 99, "what": "ever"}')
    with pytest.raises(InputError, match="schema version 99"):
        RunReader(tmp_path)


def test_unwritable_target_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(UsageError, match="Cannot write the run"):
        RunWriter(tmp_path / "file" / "run")
    assert os.listdir(tmp_path) == ["file"]


def test_object_stores_hold_runs_too() -> None:
    pytest.importorskip("fsspec")
    url = "memory://bucket/exp[1]/run"
    with RunWriter(url) as writer:
        writer.write("events", events(2, 1))
    reader = RunReader(url)
    assert reader.read("events").column("start_ns").to_pylist() == [1, 2]
    assert RunWriter(url).directory.endswith("run-2")


def test_two_writers_at_once_do_not_share_a_directory(tmp_path: Path) -> None:
    first, second = RunWriter(tmp_path / "run"), RunWriter(tmp_path / "run")
    other_rank = RunWriter(tmp_path / "run", rank=1)
    assert [Path(writer.directory).name for writer in (first, second, other_rank)] == ["run", "run-2", "run"]
    for writer, start in ((first, 5), (second, 7)):
        writer.write("events", events(start))
        writer.close()
    starts = [
        RunReader(tmp_path / name).read("events").column("start_ns").to_pylist() for name in ("run", "run-2")
    ]
    assert starts == [[5], [7]]
    assert [path.name for path in tmp_path.rglob(".*")] == [".rank-1.writing"]


def test_a_dead_writers_claim_ends_with_it(tmp_path: Path) -> None:
    script = f"import os; from explorer.store.writer import RunWriter; w = RunWriter({str(tmp_path / 'run')!r}); os._exit(0)"
    subprocess.run([sys.executable, "-c", script], check=True)
    with RunWriter(tmp_path / "run") as writer:
        assert Path(writer.directory).name == "run"
