"""Untrusted SQL: what it may do, every way out that is closed, and errors in one line."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from explorer.analysis.run import Run
from explorer.model.errors import EXIT_USAGE, QueryError
from tests.analysis.hand_built import STREAM, event, line_id, make_run, site, state


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    run = make_run(
        tmp_path_factory.mktemp("sandbox"),
        [
            event(1, "op", "aten::mm", 0, 100, site_id=line_id(3)),
            event(2, "kernel", "gemm", 50, 90, STREAM, op_id=1, site_id=line_id(3)),
        ],
        sites=[site(3), site(3, code=None)],
        host_states=[state(3, 0, 100)],
    )
    yield run
    run.close()


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("SELECT name FROM ops", [{"name": "aten::mm"}]),
        ("FROM kernels SELECT total_ns;", [{"total_ns": 40}]),
        ("-- a comment\n SELECT 1 AS x -- another", [{"x": 1}]),
        ("WITH k AS (SELECT * FROM device_events) SELECT count(*) AS n FROM k", [{"n": 1}]),
        ("SELECT code FROM sites", [{"code": "line 3"}]),
        ("SELECT host_ns FROM LINES", [{"host_ns": 100}]),
        ("SELECT range FROM range(2)", [{"range": 0}, {"range": 1}]),
        ("SELECT count(*) > 20 AS many FROM information_schema.tables", [{"many": True}]),
        ("SELECT rpad('x', 3, '-') AS x", [{"x": "x--"}]),
        ("SELECT count(*) AS n FROM memory_events", [{"n": 0}]),
        ("SELECT 1 AS a, 2 AS a, 3 AS a", [{"a": 1, "a_1": 2, "a_2": 3}]),
        (
            "SELECT x.name, y.name FROM ops AS x JOIN kernels AS y ON true",
            [{"name": "aten::mm", "name_1": "gemm"}],
        ),
    ],
)
def test_reading(run: Run, text: str, rows: list[dict[str, object]]) -> None:
    answer = run.sql(text)
    assert answer.rows() == rows
    assert not answer.truncated


@pytest.mark.parametrize(
    "text",
    [
        "DESCRIBE ops",
        "SUMMARIZE kernels",
        "SHOW TABLES",
        "EXPLAIN SELECT * FROM ops",
        "EXPLAIN ANALYZE SELECT * FROM ops",
        "EXPLAIN (ANALYZE, FORMAT json) SELECT 1",
    ],
)
def test_looking_around(run: Run, text: str) -> None:
    assert len(run.sql(text)) > 0


def test_show_tables_lists_every_table_and_view(run: Run) -> None:
    names = {row["name"] for row in run.sql("SHOW TABLES").rows()}
    assert set(run.engine.relations.names()) <= names


WRITES = [
    "COPY events TO '{out}'",
    "COPY (SELECT 1) TO '{out}' (FORMAT parquet)",
    "EXPLAIN ANALYZE COPY events TO '{out}'",
    "EXPLAIN (ANALYZE) COPY events TO '{out}'",
    "EXPLAIN COPY events TO '{out}'",
    "/* x */ EXPLAIN /* y */ ANALYZE COPY events TO '{out}'",
    "ATTACH '{out}'",
    "ATTACH '{out}' AS other; SELECT 1",
    "DETACH memory",
    "INSTALL httpfs",
    "LOAD httpfs",
    "FORCE INSTALL json",
    "SET threads = 1",
    "SET enable_external_access = true",
    "SET lock_configuration = false",
    "RESET memory_limit",
    "SET VARIABLE x = 1",
    "PRAGMA database_list",
    "PRAGMA enable_profiling",
    "CALL pragma_version()",
    "CREATE TABLE x (a INT)",
    "CREATE OR REPLACE VIEW lines AS SELECT 1",
    "CREATE TEMP MACRO f(x) AS x",
    "CREATE SECRET s (TYPE s3)",
    "DROP VIEW lines",
    "ALTER VIEW lines RENAME TO y",
    "COMMENT ON VIEW lines IS 'x'",
    "INSERT INTO events SELECT * FROM events",
    "DELETE FROM events",
    "UPDATE events SET name = 'x'",
    "TRUNCATE events",
    "MERGE INTO events USING ops ON true WHEN MATCHED THEN DELETE",
    "EXPORT DATABASE '{out}'",
    "IMPORT DATABASE '{out}'",
    "VACUUM",
    "CHECKPOINT",
    "BEGIN",
    "PREPARE p AS SELECT 1",
    "EXECUTE p",
    "USE memory",
    "SELECT 1; SELECT 2",
    "SELECT 1; COPY events TO '{out}'",
    "WITH x AS (SELECT 1) INSERT INTO events SELECT * FROM x",
    "PIVOT ops ON name USING sum(calls)",
]


@pytest.mark.parametrize("text", WRITES)
def test_writing_is_refused(run: Run, tmp_path: Path, text: str) -> None:
    with pytest.raises(QueryError) as caught:
        run.sql(text.format(out=tmp_path / "out"))
    assert caught.value.exit_code == EXIT_USAGE
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []
    assert run.sql("SELECT name FROM ops").rows() == [{"name": "aten::mm"}]


REACHING_OUT = [
    "SELECT * FROM read_csv('/etc/passwd')",
    "SELECT * FROM read_text('/etc/passwd')",
    "SELECT * FROM read_blob('/etc/passwd')",
    "SELECT * FROM read_parquet('{secret}')",
    "SELECT * FROM parquet_metadata('{secret}')",
    "SELECT * FROM read_json('/etc/passwd')",
    "SELECT * FROM sniff_csv('/etc/passwd')",
    "SELECT * FROM glob('/etc/*')",
    "SELECT * FROM '/etc/passwd'",
    "SELECT * FROM '{secret}'",
    'SELECT * FROM "{secret}"',
    "SELECT * FROM 'https://example.com/x.parquet'",
    "SELECT (SELECT content FROM read_text('/etc/passwd'))",
    "WITH x AS (FROM read_text('/etc/passwd')) SELECT * FROM x",
    "SELECT 1 WHERE EXISTS (FROM glob('/*'))",
    "SELECT getenv('HOME')",
    "SELECT * FROM query('COPY events TO ''x''')",
    "SELECT * FROM query_table('events')",
    "SELECT * FROM json_execute_serialized_sql('{{}}')",
    "SELECT * FROM enable_logging()",
    "SELECT * FROM enable_profiling()",
    "SELECT * FROM duckdb_secrets()",
    "SELECT * FROM duckdb_settings()",
    "SELECT * FROM arrow_scan(1, 2, 3)",
    "SELECT * FROM pandas_scan(1)",
    "SELECT * FROM python_map_function(1)",
    "SELECT * FROM secret_frame",
    "SELECT write_log('x')",
    "SELECT repeat('x', 100000000) FROM range(100)",
    "SELECT lpad('x', range::INT, '-') FROM range(100)",
]


@pytest.mark.parametrize("text", REACHING_OUT)
def test_reaching_outside_the_run_is_refused(run: Run, text: str) -> None:
    import pyarrow as pa

    secret_frame = pa.table({"secret": [1]})
    assert secret_frame.num_rows == 1
    secret = next(Path(run.directory, "events").rglob("*.parquet"))
    with pytest.raises(QueryError) as caught:
        run.sql(text.format(secret=secret))
    assert "\n" not in str(caught.value)
    assert "root:" not in str(caught.value)


def test_an_endless_query_is_stopped_and_the_next_one_works(run: Run) -> None:
    started = time.monotonic()
    with pytest.raises(QueryError, match=r"stopped after 0\.3 s"):
        run.sql(
            "WITH RECURSIVE t AS (SELECT 1 AS a UNION ALL SELECT a + 1 FROM t) SELECT count(*) FROM t",
            timeout_s=0.3,
        )
    assert time.monotonic() - started < 20
    assert run.sql("SELECT 1 AS x").rows() == [{"x": 1}]


def test_a_cross_join_is_stopped(run: Run) -> None:
    with pytest.raises(QueryError, match="stopped"):
        run.sql("SELECT sum(a.range * b.range) FROM range(1000000) a, range(1000000) b", timeout_s=0.3)


def test_rows_are_capped_and_said(run: Run) -> None:
    answer = run.sql("SELECT * FROM range(100000000)", max_rows=5)
    assert (len(answer), answer.truncated) == (5, True)
    assert answer.to_dict()["truncated"] is True
    whole = run.sql("SELECT * FROM range(5)", max_rows=5)
    assert (len(whole), whole.truncated) == (5, False)


def test_bytes_are_capped(run: Run) -> None:
    answer = run.sql("SELECT repeat('x', 10000) AS x FROM range(20000)", max_rows=100_000)
    assert answer.truncated
    assert 0 < answer.arrow().nbytes <= (64 << 20) + 10_000 * 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT * FROM opps", "There is no table or view opps. Did you mean ops"),
        ("SELECT durations_ns FROM events", "duration_ns"),
        ("SELEC 1", "syntax error"),
        ("", "The query is empty"),
        (" ; ", "The query is empty"),
        ("SELECT * FROM lines WHERE x = 'open", "unterminated"),
        ("SELECT count(*) FROM zzzzz", "SHOW TABLES lists what there is"),
        ("SELECT 'a' || 1 / 0 FROM ops WHERE name::INT = 1", "Could not convert"),
        ("SELECT '\0'", "zero character"),
        ("SELECT " + "1 + " * 40_000 + "1", "longer than"),
    ],
)
def test_errors_are_one_line_that_helps(run: Run, text: str, message: str) -> None:
    with pytest.raises(QueryError) as caught:
        run.sql(text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_answer_is_the_same_as_the_trusted_one(run: Run) -> None:
    for name in run.engine.relations.names():
        text = f"SELECT * FROM {name}"
        ours, trusted = run.sql(text).arrow(), run.engine.sql(text).arrow()
        assert ours.schema.names == trusted.schema.names, name
        assert sorted(map(repr, ours.to_pylist())) == sorted(map(repr, trusted.to_pylist())), name
