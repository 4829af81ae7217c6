"""Profiles of other versions, with missing, renamed, retyped, unknown and damaged parts: nothing crashes, nothing is hidden."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from explorer.analysis.findings import all_rules, find
from explorer.analysis.run import Run, open_run
from explorer.collectors.neuron.session_import import import_session
from explorer.model.neuron_schema import RENAMES, official_tables, source_columns
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


_RENAMED = {
    "Instruction": {
        "unit": "engine",
        "began": "start_ts",
        "frames": "stack_frame_ids",
        "mul_work": "adjusted_flops",
    },
    "DmaPacketAggregated": {"ring": "queue_name", "from_where": "source"},
    "Metadata": {"memory_speed": "dma_ddr_bandwidth"},
}
"""A made-up rename map, new name to the reference's: none is published. No name is like the one it stands for."""


def _renamed(table: str) -> Change:
    names = {old: new for new, old in _RENAMED[table].items()}
    return lambda rows: rows.rename_columns([names.get(name, name) for name in rows.column_names])


def _answers(run: Run) -> dict[str, list[dict[str, object]]]:
    queries = {
        "engines": "SELECT * FROM engines ORDER BY core, engine",
        "lines": "SELECT file, line, engine_ns, transfer_bytes FROM neuron_lines ORDER BY ALL",
        "bounds": "SELECT * FROM neuron_bounds ORDER BY core",
        "causes": "SELECT * FROM neuron_idle_causes ORDER BY ALL",
        "official": "SELECT engine, start_ts, stack_frame_ids, adjusted_flops FROM neuron.Instruction ORDER BY ALL",
    }
    return {name: run.sql(text).rows() for name, text in queries.items()}


def _findings(run: Run) -> list[tuple[str, int]]:
    rules = [rule for rule in all_rules() if rule.name.startswith("neuron_")]
    found = find(run, rules=rules, replay=False)
    assert not [item for item in found.not_checked if "failed" in item.reason]
    return [(finding.rule, finding.saving.expected) for finding in found]


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return _changed(tmp_path_factory.mktemp("reference"), {})


@pytest.mark.parametrize("major", [8, 12])
def test_a_rename_map_makes_a_version_read_like_the_reference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reference: Run, major: int
) -> None:
    monkeypatch.setitem(RENAMES, major, _RENAMED)
    changes: dict[str, Change | None] = {
        table: _renamed(table) for table in ("Instruction", "DmaPacketAggregated")
    }
    changes["Metadata"] = lambda rows: _renamed("Metadata")(_with_version(f"{major}.0.1")(rows))
    run = _changed(tmp_path, changes)
    told = " ".join(
        row["message"]
        for row in run.engine.sql("SELECT message FROM health WHERE kind = 'neuron_renamed_columns'").rows()
    )
    for table, names in _RENAMED.items():
        for new, old in names.items():
            assert f"{new} as {old}" in told, table
    assert _answers(run) == _answers(reference)
    assert _findings(run) == _findings(reference)


def test_a_rename_map_is_for_its_version_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RENAMES, 9, _RENAMED)
    run = _changed(tmp_path, {"Metadata": _with_version("8.0.0"), "Instruction": _renamed("Instruction")})
    unknown = _health(run)["neuron_unknown_columns"]
    assert all(name in unknown for name in _RENAMED["Instruction"])
    # Kept under the names they came with; what they stood for is null.
    row = run.sql(
        "SELECT count(unit) AS kept, count(engine) AS known, count(*) AS n FROM neuron.Instruction"
    ).rows()[0]
    assert row == {"kept": 937, "known": 0, "n": 937}
    _findings(run)


def test_profiles_of_two_versions_in_one_run_are_each_read_by_their_own_map(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # One name, two meanings.
    monkeypatch.setitem(RENAMES, 8, {"Instruction": {"unit": "engine"}})
    monkeypatch.setitem(RENAMES, 9, {"Instruction": {"unit": "timeline_track"}})
    for name, version in (("old", "8.0.0"), ("new", "9.0.0")):
        source = plant(name=name).builder.write(tmp_path / "data")
        for path, change in (
            (source / "Metadata.parquet", _with_version(version)),
            (source / "Instruction.parquet", lambda rows: rows.drop_columns("timeline_track").rename_columns(
                ["unit" if column == "engine" else column for column in rows.column_names if column != "timeline_track"])),
        ):  # fmt: skip
            pq.write_table(change(pq.read_table(path)), path)
    run = open_run(import_session(tmp_path / "data", tmp_path / "run").directory)
    for ask in (run.engine.sql, run.sql):
        rows = ask(
            "SELECT profile, count(engine) AS engines, count(timeline_track) AS tracks FROM neuron.Instruction GROUP BY ALL ORDER BY ALL"
        ).rows()
        assert [tuple(row.values()) for row in rows] == [("new", 0, 937), ("old", 937, 0)]


def _retyped(rows: pa.Table) -> pa.Table:
    """Numbers as text, text ids as numbers, 64-bit numbers as 32-bit or as doubles."""
    kinds = {
        "id": pa.string(),
        "duration_ns": pa.float64(),
        "pcore_idx": pa.string(),
        "start_ts": pa.string(),
        "bir_id": pa.int64(),
    }
    for name, kind in kinds.items():
        if name in rows.column_names:
            place = rows.column_names.index(name)
            rows = rows.set_column(place, name, rows.column(name).cast(kind))
    return rows


@pytest.mark.parametrize("major", [9, 11])
def test_retyped_columns_read_like_the_reference(tmp_path: Path, reference: Run, major: int) -> None:
    retyped: dict[str, Change | None] = dict.fromkeys(
        ("Instruction", "DmaPacket", "DmaPacketAggregated"), _retyped
    )
    run = _changed(tmp_path, retyped | {"Metadata": _with_version(f"{major}.3.0")})
    assert _answers(run) == _answers(reference)
    assert _findings(run) == _findings(reference)


@pytest.mark.parametrize("major", [8, 9, 10, 11, 12])
def test_new_and_missing_columns_of_any_version(tmp_path: Path, major: int) -> None:
    """Every optional column gone, a new one in each table, half of the tables absent: nothing crashes, what is new is listed."""

    def change(rows: pa.Table) -> pa.Table:
        return rows.append_column(f"new_in_{major}", pa.array([[1, 2]] * rows.num_rows))

    _, source = write_story(tmp_path / "data")
    absent = sorted(path.stem for path in source.glob("*.parquet"))[major % 2 :: 2]
    for path in source.glob("*.parquet"):
        table = path.stem.split("_")[0]
        if path.stem in absent and table not in ("Instruction", "Metadata"):
            path.unlink()
            continue
        rows = pq.read_table(path)
        optional = [c.name for c in official_tables()[table].columns.values() if not c.required]
        rows = change(rows.drop_columns([name for name in optional if name in rows.column_names]))
        pq.write_table(_with_version(f"{major}.0.0")(rows) if table == "Metadata" else rows, path)
    run = open_run(import_session(tmp_path / "data", tmp_path / "run").directory)
    assert f"new_in_{major}" in _health(run)["neuron_unknown_columns"]
    assert run.sql(f"SELECT sum(new_in_{major}[2]) AS n FROM neuron.Instruction").rows() == [{"n": 2 * 937}]
    for name in run.engine.relations.names():
        if name.startswith(("neuron_", "engines")):
            run.sql(f"SELECT * FROM {name}")
    _findings(run)


def test_without_times_of_instructions_no_wait_is_claimed(tmp_path: Path) -> None:
    run = _changed(tmp_path, {"Instruction": lambda rows: rows.drop_columns(["start_ts"])})
    assert "Instruction" in _health(run)["neuron_impossible_times"]
    # Transfers have times: "nothing computed meanwhile" would be true of them and mean nothing.
    assert {rule for rule, saving in _findings(run) if saving} == set()


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


@settings(max_examples=6)
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
        "neuron_line_bounds",
        "inference_steps",
    ):
        run.view(view)
    run.sql("SELECT * FROM neuron_region_bounds")
    _findings(run)


def test_columns_are_matched_only_where_no_doubt_is() -> None:
    assert source_columns("Throttle", ["timestamp", "duration_ns"], None) == {
        "timestamp": "timestamp",
        "duration": "duration_ns",
    }
    # Two candidates for one name: neither is taken.
    assert "duration_ns" not in source_columns("Instruction", ["duration", "Duration"], None)
