"""Pieces of SQL that are answered once, probes that spare rules their queries, and examples looked up at the end."""

from __future__ import annotations

from pathlib import Path

import pytest

from explorer.analysis.engine import Engine
from explorer.analysis.rule_context import RuleContext
from explorer.analysis.rule_sql import time_outside
from explorer.analysis.step_scope import find_scope
from explorer.store.reader import RunReader
from explorer.store.writer import RunWriter


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    with RunWriter(tmp_path / "run") as writer:
        writer.write("tracks", [{"track_id": 0, "kind": "thread", "label": "main"}])
        writer.write("steps", [{"step": 0, "start_ns": 0, "duration_ns": 100, "complete": True}])
        writer.write(
            "events",
            [
                {"event_id": number, "track_id": 0, "category": "op", "name": name, "start_ns": start,
                 "duration_ns": 10, "self_ns": 10, "step": step}
                for number, (name, start, step) in enumerate(
                    [("a", 50, 0), ("b", 20, 0), ("a", 0, 0), ("c", 120, None)], 1
                )
            ],
        )  # fmt: skip
    return Engine(RunReader(writer.directory), threads=1, keeps=True)


def test_a_kept_answer_stands_for_its_text_and_the_text_stays_in_the_result(engine: Engine) -> None:
    inner = engine.keep("SELECT start_ns FROM events WHERE name = 'a'")
    outer = engine.keep(f"SELECT start_ns + 1 AS later_ns FROM ({inner})")
    text = f"SELECT sum(later_ns)::BIGINT AS total, (SELECT count(*) FROM ({inner})) AS n FROM ({outer})"
    # What was answered once is not asked again: without its view the kept answers still serve.
    engine.connection.execute("DROP VIEW events")
    answer = engine.sql(text)
    assert answer.rows() == [{"total": 52, "n": 2}]
    assert answer.sql == text


def test_an_engine_that_stays_open_keeps_nothing(engine: Engine) -> None:
    open_for_long = Engine(engine.reader, threads=1)
    inner = open_for_long.keep("SELECT start_ns FROM events")
    assert open_for_long.sql(f"SELECT count(*) AS n FROM ({inner})").rows() == [{"n": 4}]
    assert open_for_long.sql(
        "SELECT count(*) AS n FROM duckdb_tables() WHERE table_name = 'kept_0'"
    ).rows() == [{"n": 0}]


def test_examples_are_looked_up_in_the_order_the_rule_gives_else_by_id(engine: Engine) -> None:
    context = RuleContext(engine, find_scope(engine))
    sql = "SELECT count(*) AS n FROM events"
    by_id, row = context.evidence("{n} events.", sql, "SELECT event_id, start_ns FROM events WHERE step = 0")
    assert row == {"n": 4}
    assert by_id.events == ()
    assert context.with_examples(by_id).events == ("0:1", "0:2", "0:3")
    longest = "SELECT event_id FROM events WHERE step = 0 ORDER BY start_ns"
    ordered, _ = context.evidence("{n} events.", sql + " WHERE true", longest)
    assert context.with_examples(ordered).events == ("0:3", "0:2", "0:1")


def test_what_a_run_holds_is_known_by_kind(engine: Engine) -> None:
    context = RuleContext(engine, find_scope(engine))
    assert context.holds("name = 'a' AND events = 2")
    assert context.holds("name = 'c' AND events = 0 AND all_events = 1")
    assert not context.holds("category = 'gc'")


def test_time_outside_counts_each_time_once_whatever_overlaps(engine: Engine) -> None:
    def rows(*spans: tuple[int, int]) -> str:
        return " UNION ALL ".join(
            f"SELECT {start} AS start_ns, {end - start} AS duration_ns" for start, end in spans
        )

    # The long first row of the source reaches over the second, which lies before what touches only the first.
    found = engine.sql(
        f"SELECT * FROM ({time_outside(rows((0, 100), (10, 20)), rows((30, 40), (35, 50), (90, 120), (200, 210)))}) ORDER BY 1"
    ).rows()
    assert [(row["start_ns"], row["duration_ns"]) for row in found] == [
        (0, 10), (10, 10), (20, 10), (50, 40),
    ]  # fmt: skip
