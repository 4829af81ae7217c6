"""Hostile and damaged SQLite inputs."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from explorer.collectors import sqlite_file
from explorer.collectors.import_trace import import_trace
from explorer.collectors.sqlite_file import SqliteFile
from explorer.model.errors import InputError
from tests.collectors.imported import Imported
from tests.traces import trace


def make(path: Path, script: str) -> Path:
    connection = sqlite3.connect(path)
    connection.executescript(script)
    connection.commit()
    connection.close()
    return path


def test_views_triggers_and_generated_columns_never_run(tmp_path):
    path = make(
        tmp_path / "hostile.sqlite",
        "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT, bomb AS (hex(zeroblob(50000000))) VIRTUAL);"
        "INSERT INTO StringIds (id, value) VALUES (1, 'x');"
        "CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
        "SELECT i AS start, i AS end FROM n;"
        "CREATE TRIGGER t AFTER INSERT ON StringIds BEGIN SELECT 1; END;"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INT, end INT, globalTid INT, nameId INT);"
        "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (1, 2, 3, 1);",
    )
    run = Imported(path, tmp_path)
    run.check_counts()
    assert [row["name"] for row in run.rows("events")] == ["x"]
    assert run.health()["schema_code_ignored"] == 2
    with SqliteFile(str(path)) as file:
        assert file.tables["StringIds"] == ["id", "value"]
        assert sorted(file.ignored) == ["trigger t", "view CUPTI_ACTIVITY_KIND_KERNEL"]


def test_statements_other_than_reads_are_refused(tmp_path):
    path = make(tmp_path / "plain.sqlite", "CREATE TABLE t (a);")
    with SqliteFile(str(path)) as file:
        for text in (
            "INSERT INTO t VALUES (1)",
            "ATTACH 'x' AS y",
            "PRAGMA writable_schema=1",
            "SELECT load_extension('x')",
        ):
            with pytest.raises(sqlite3.Error):
                file._connection.execute(text).fetchall()


def test_an_oversized_value_costs_its_row_only(tmp_path, monkeypatch):
    monkeypatch.setattr(sqlite_file, "MAX_VALUE_BYTES", 1000)
    path = make(
        tmp_path / "big.sqlite",
        "CREATE TABLE t (a INTEGER, b TEXT); INSERT INTO t VALUES (1, 'x'), (2, hex(zeroblob(5000))), (3, 'y'), (4, 'z');",
    )
    with SqliteFile(str(path)) as file:
        assert list(file.rows("t", ("a",))) == [(1,), (2,), (3,), (4,)]
        assert list(file.rows("t")) == [(1, "x"), (3, "y"), (4, "z")]
        (loss,) = file.losses
    assert loss.table == "t"
    assert "too big" in loss.reason


def test_text_that_is_not_utf8_is_repaired_and_counted(tmp_path):
    path = make(
        tmp_path / "text.sqlite", "CREATE TABLE t (a TEXT); INSERT INTO t VALUES (CAST(x'61ff62' AS TEXT));"
    )
    with SqliteFile(str(path)) as file:
        assert list(file.rows("t")) == [("a\ufffdb",)]
        assert file.repaired_texts == 1


def test_odd_names_and_paths(tmp_path):
    folder = tmp_path / "a?b#c%20'd"
    folder.mkdir()
    path = make(
        folder / "x;y.sqlite", 'CREATE TABLE "a""b; DROP" ("c""d" INT) ; INSERT INTO "a""b; DROP" VALUES (7);'
    )
    with SqliteFile(str(path)) as file:
        assert list(file.records('a"b; DROP')) == [{'c"d': 7}]


def test_tables_without_rowid_and_missing_columns(tmp_path):
    path = make(
        tmp_path / "t.sqlite",
        "CREATE TABLE t (a INTEGER PRIMARY KEY, b) WITHOUT ROWID; INSERT INTO t VALUES (1, 2);",
    )
    with SqliteFile(str(path)) as file:
        assert list(file.rows("t", ("B", "gone", "a"))) == [(2, None, 1)]
        assert list(file.rows("absent")) == []


def test_a_text_file_is_no_database(tmp_path):
    path = tmp_path / "x.sqlite"
    path.write_bytes(sqlite_file.MAGIC + b"garbage" * 100)
    with pytest.raises(InputError, match="cannot be read as an SQLite database"):
        import_trace(path, tmp_path / "run")


def test_a_log_beside_the_file_is_said(tmp_path):
    path = make(
        tmp_path / "x.sqlite", "CREATE TABLE StringIds (id, value); CREATE TABLE NVTX_EVENTS (start, end);"
    )
    Path(f"{path}-wal").write_bytes(b"x" * 100)
    run = Imported(path, tmp_path)
    assert run.health()["unread_log"] == 1


@pytest.mark.parametrize("keep", [0.2, 0.5, 0.9])
def test_a_truncated_export_keeps_what_is_readable(tmp_path, keep):
    data = Path(trace("nsys/nsysai_h100_2gpu_1s.sqlite")).read_bytes()
    path = tmp_path / "cut.sqlite"
    path.write_bytes(data[: int(len(data) * keep)])
    try:
        run = Imported(path, tmp_path)
    except InputError:
        # The pages that hold the first definitions are gone.
        assert keep < 0.5
        return
    run.check_counts()
    assert run.manifest.losses
    assert run.report.exit_code == 4


@settings(max_examples=25)
@given(data=st.data())
def test_flipped_bytes_never_crash_or_invent(tmp_path_factory, data):
    """Either a clear refusal, or a run whose rows were all in the file."""
    original = Path(trace("nsys/nsysai_mock.sqlite")).read_bytes()
    broken = bytearray(original)
    for place in data.draw(st.lists(st.integers(100, len(original) - 1), min_size=1, max_size=20)):
        broken[place] ^= data.draw(st.integers(1, 255))
    folder = tmp_path_factory.mktemp("flip")
    path = folder / "x.sqlite"
    path.write_bytes(bytes(broken))
    try:
        run = Imported(path, folder)
    except InputError:
        return
    run.check_counts()
    assert len(run.rows("events")) <= 44


def test_damage_inside_an_error_message_is_an_error_too(tmp_path):
    """SQLite repeats the damaged schema in its message, in bytes that are no text."""
    path = make(
        tmp_path / "x.sqlite", "CREATE TABLE StringIds (id, value); CREATE TABLE NVTX_EVENTS (start, end);"
    )
    data = path.read_bytes()
    broken = data.replace(b"StringIdsStringIds", b"String\x98dsStringIds").replace(
        b"CREATE TABLE String", b"CREATE TABEL String"
    )
    assert broken != data
    path.write_bytes(broken)
    with pytest.raises(InputError):
        import_trace(path, tmp_path / "run")


def test_a_damaged_definition_costs_what_stands_behind_it_only(tmp_path):
    """SQLite alone refuses the whole file."""
    path = make(
        tmp_path / "x.sqlite",
        "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);"
        "CREATE TABLE NVTX_EVENTS (start INT, end INT, eventType INT, text TEXT, globalTid INT);"
        "CREATE TABLE broken (a); CREATE TABLE behind (a);"
        "INSERT INTO NVTX_EVENTS VALUES (1, 5, 59, 'a', 9); INSERT INTO behind VALUES (7);",
    )
    path.write_bytes(path.read_bytes().replace(b"CREATE TABLE broken", b"CREATE TABEL broken"))
    with sqlite3.connect(path) as plain, pytest.raises(sqlite3.DatabaseError, match="malformed"):
        plain.execute("SELECT * FROM NVTX_EVENTS").fetchall()
    run = Imported(path, tmp_path)
    assert [(row["name"], row["duration_ns"]) for row in run.rows("events")] == [("a", 4)]
    assert "sqlite_master" in str(run.manifest.losses)
    assert run.report.exit_code == 4
