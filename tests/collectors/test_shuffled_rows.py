"""The order of rows in a file changes nothing where the format gives it no meaning: databases and lists of records."""

from __future__ import annotations

import gzip
import json
import random
import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.collectors.imported import Imported
from tests.traces import trace


def shuffled_database(source: Path, target: Path, chance: random.Random) -> None:
    """A copy with the rows of every table in another order."""
    with (
        sqlite3.connect(f"file:{source}?mode=ro&immutable=1", uri=True) as old,
        sqlite3.connect(target) as new,
    ):
        tables = old.execute(
            "SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
        ).fetchall()
        for name, sql in tables:
            new.execute(sql)
            rows = old.execute(f'SELECT * FROM "{name}"').fetchall()
            chance.shuffle(rows)
            for row in rows:
                new.execute(f'INSERT INTO "{name}" VALUES ({", ".join("?" * len(row))})', row)


def shuffled_json(source: Path, target: Path, chance: random.Random) -> None:
    document = json.loads(gzip.decompress(source.read_bytes()))
    (tool,) = document["rocprofiler-sdk-tool"]
    for name, rows in tool["buffer_records"].items():
        tool["buffer_records"][name] = rows = rows[:150]
        chance.shuffle(rows)
    target.write_text(json.dumps(document))


def linked(run: Imported) -> Counter[Any]:
    """Every event with what it is linked to, by name and time."""
    run.check_counts()
    events = run.rows("events")
    known = {row["event_id"]: (row["name"], row["start_ns"], row["duration_ns"]) for row in events}
    links = ("parent_id", "launch_id", "op_id", "forward_id")
    return Counter(
        (known[row["event_id"]], *(known.get(row[name]) for name in links), row["step"], row["self_ns"])
        for row in events
    )


@pytest.mark.parametrize(
    ("name", "shuffle"),
    [
        ("nsys/nsysai_mock.sqlite", shuffled_database),
        ("ascend/multirank_level1/rank0_ascend_pytorch_profiler.db", shuffled_database),
        ("amd/tl_rocprofv3_908_results.json.gz", shuffled_json),
    ],
)
def test_order_does_not_matter(name: str, shuffle: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    class Straight(random.Random):
        def shuffle(self, x: Any) -> None:
            pass

    def imported(chance: random.Random) -> Counter[Any]:
        folder = tmp_path_factory.mktemp("order")
        shuffle(trace(name), folder / "x", chance)
        return linked(Imported(folder / "x", folder))

    expected = imported(Straight())
    assert expected

    @settings(max_examples=2, phases=[Phase.generate])
    @given(seed=st.integers(0, 2**32))
    def any_order(seed: int) -> None:
        assert imported(random.Random(seed)) == expected

    any_order()
