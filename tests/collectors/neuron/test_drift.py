"""Profiles of other versions, with missing, renamed, retyped, unknown and damaged parts: nothing crashes, nothing is hidden."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from explorer.analysis.run import Run, open_run
from explorer.collectors.neuron.session_import import import_session
from explorer.model.neuron_schema import official_tables, source_columns
from tests.neuron_fixture.story import plant, write_story

Change = Callable[[pa.Table], pa.Table]


def _changed(folder: Path, changes: dict[str, Change | None]) -> Run:
    """Import the story after rewriting some tables (None: the table is absent)."""
    _, source = write_story(folder / "data")
    for table, change in changes.items():
        for path in [*source.glob(f"{table}.parquet"), *source.glob(f"{table}_[0-9].parquet")]:
            if change is None:
                path.unlink()
            else:
                pq.write_table(change(pq.read_table(path)), path)
    return open_run(import_session(folder / "data", folder / "run").directory)


def _health(run: Run) -> dict[str, str]:
    return {row["kind"]: row["message"] for row in run.engine.sql("SELECT kind, message FROM health").rows()}


def _with_version(version: str) -> Change:
    def change(table: pa.Table) -> pa.Table:
        place = table.column_names.index("profile_schema_version")
        return table.set_column(place, "profile_schema_version", pa.array([version] * table.num_rows))

    return change


@pytest.mark.parametrize(
    "version", ["7.3.1", "8.0.0", "9.2.0", "10.0.0", "11.1.4", "12.0.1", "13.0.0", "next", ""]
)
def test_any_version_is_read(tmp_path: Path, version: str) -> None:
    run = _changed(tmp_path, {"Metadata": _with_version(version)})
    assert (
        run.engine.sql("SELECT count(*) AS n FROM events WHERE category = 'instruction'").rows()[0]["n"]
        == 937
    )
    told = "neuron_schema_version" in _health(run)
    assert told == (version[:1].isdigit() and not version.startswith("7."))


def test_renamed_retyped_and_unknown_columns(tmp_path: Path) -> None:
    def change(table: pa.Table) -> pa.Table:
        names = [
            "duration" if n == "duration_ns" else "PcoreIdx" if n == "pcore_idx" else n
            for n in table.column_names
        ]
        table = table.rename_columns(names)
        place = names.index("id")
        table = table.set_column(place, "id", table.column("id").cast(pa.string()))
        return table.append_column("new_in_12", pa.array(["x"] * table.num_rows))

    run = _changed(tmp_path, {"Instruction": change})
    health = _health(run)
    assert "duration as duration_ns" in health["neuron_renamed_columns"]
    assert "PcoreIdx as pcore_idx" in health["neuron_renamed_columns"]
    assert "new_in_12" in health["neuron_unknown_columns"]
    for ask in (run.engine.sql, run.sql):
        row = ask(
            "SELECT sum(duration_ns) AS ns, max(pcore_idx) AS core, min(typeof(id)) AS kind, min(new_in_12) AS new FROM neuron.Instruction"
        ).rows()[0]
        assert row == {"ns": sum(plant().line_ns.values()), "core": 1, "kind": "BIGINT", "new": "x"}
    active = run.engine.sql("SELECT sum(active_ns) AS ns FROM engines WHERE engine = 'Tensor'").rows()[0][
        "ns"
    ]
    assert active == 2 * (74_802 + 10 * 213)


def test_unknown_tables_are_kept_and_listed(tmp_path: Path) -> None:
    _, source = write_story(tmp_path / "data")
    pq.write_table(pa.table({"a": [1, 2], "b": ["x", "y"]}), source / "FutureTable.parquet")
    run = open_run(import_session(tmp_path / "data", tmp_path / "run").directory)
    assert "FutureTable" in _health(run)["neuron_unknown_tables"]
    for ask in (run.engine.sql, run.sql):
        assert ask("SELECT a, b, rank, profile FROM neuron.FutureTable ORDER BY a").rows() == [
            {"a": 1, "b": "x", "rank": 0, "profile": "story"},
            {"a": 2, "b": "y", "rank": 0, "profile": "story"},
        ]


def test_a_damaged_file_loses_only_itself(tmp_path: Path) -> None:
    _, source = write_story(tmp_path / "data")
    whole = pq.read_metadata(source / "Instruction_0.parquet").num_rows
    damaged = source / "Instruction_1.parquet"
    damaged.write_bytes(damaged.read_bytes()[:500])
    result = import_session(tmp_path / "data", tmp_path / "run")
    run = open_run(result.directory)
    assert result.lost == 1
    assert run.reader.manifests[0].losses[0]["where"] == str(damaged)
    count = run.engine.sql("SELECT count(*) AS n FROM events WHERE category = 'instruction'").rows()[0]["n"]
    assert count == whole


def test_impossible_times_go_to_quarantine(tmp_path: Path) -> None:
    def change(table: pa.Table) -> pa.Table:
        place = table.column_names.index("duration_ns")
        values = table.column("duration_ns").to_pylist()
        values[0] = -5
        return table.set_column(place, "duration_ns", pa.array(values, pa.int64()))

    run = _changed(tmp_path, {"DmaPacketAggregated": change})
    rows = run.engine.sql("SELECT reason, row FROM quarantine").rows()
    assert [row["reason"] for row in rows] == ["negative_duration"]
    assert '"table": "DmaPacketAggregated"' in rows[0]["row"]
    assert run.engine.sql("SELECT count(*) AS n FROM events WHERE category = 'dma'").rows()[0]["n"] == 1103


def test_repeated_ids_still_import(tmp_path: Path) -> None:
    def change(table: pa.Table) -> pa.Table:
        place = table.column_names.index("id")
        return table.set_column(place, "id", pa.array([7] * table.num_rows, pa.int64()))

    run = _changed(tmp_path, {"Instruction": change})
    assert "neuron_repeated_ids" in _health(run)
    row = run.engine.sql(
        "SELECT count(*) AS n, count(DISTINCT event_id) AS d FROM events WHERE category = 'instruction'"
    ).rows()[0]
    assert row == {"n": 937, "d": 937}


@pytest.mark.parametrize("table", [*sorted(plant().builder.rows), "all but Instruction"])
def test_every_table_may_be_absent(tmp_path: Path, table: str) -> None:
    absent = set(official_tables()) - {"Instruction"} if table.startswith("all") else {table}
    run = _changed(tmp_path, dict.fromkeys(absent))
    for view in (
        "engines",
        "neuron_bounds",
        "neuron_utilization",
        "neuron_lines",
        "neuron_idle_causes",
        "neuron_dma",
    ):
        run.view(view)


@settings(max_examples=6, deadline=None)
@given(data=st.data())
def test_any_columns_may_be_absent(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    table = data.draw(
        st.sampled_from(["Instruction", "DmaPacketAggregated", "DmaPacket", "Flow", "Metadata", "CcOp"])
    )
    dropped = data.draw(
        st.sets(st.sampled_from(sorted(official_tables()[table].columns)), min_size=1, max_size=12)
    )

    def change(rows: pa.Table) -> pa.Table:
        return rows.drop_columns([name for name in rows.column_names if name in dropped])

    run = _changed(tmp_path_factory.mktemp("drift"), {table: change})
    for view in (
        "engines",
        "neuron_bounds",
        "neuron_utilization",
        "neuron_lines",
        "neuron_idle_causes",
        "neuron_dma",
    ):
        run.view(view)


def test_columns_are_matched_only_where_no_doubt_is() -> None:
    assert source_columns("Throttle", ["timestamp", "duration_ns"], None) == {
        "timestamp": "timestamp",
        "duration": "duration_ns",
    }
    # Two candidates for one name: neither is taken.
    assert "duration_ns" not in source_columns("Instruction", ["duration", "Duration"], None)
