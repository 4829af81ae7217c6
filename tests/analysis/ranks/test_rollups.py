"""Roll-ups give exactly what the events give, and are not read where they do not belong to the run as it is."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from explorer.analysis import rank_rollups
from explorer.analysis.engine import Engine
from explorer.analysis.gathered_rollups import FEWEST_RANKS, SMALL_TABLES, gathered
from explorer.analysis.rank_rollups import roll_up_ranks
from explorer.analysis.ranks.job_report import job_report
from explorer.analysis.rollup import FOLDER, KEPT_VIEWS, ROLLUPS, names, rolled_up
from explorer.analysis.run import open_run
from explorer.collectors.import_trace import import_trace
from explorer.store.reader import RunReader
from tests.analysis.ranks.job import Job
from tests.integration.kineto_ranks import write_ranks

RANKS = FEWEST_RANKS + 1
JOB = Job(
    ranks=RANKS,
    steps=12,
    extra={(2, step): 300_000 for step in range(3, 12)},
    offset_ns=[1000 * rank for rank in range(RANKS)],
    hosts=[f"host{rank // 4}" for rank in range(RANKS)],
)


@pytest.fixture
def many(tmp_path: Path) -> str:
    """A run of so many ranks that their roll-ups are gathered."""
    directory = JOB.write(tmp_path / "many")
    assert roll_up_ranks(directory, processes=1) == []
    return directory


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Four imported ranks, rolled up one by one."""
    folder = tmp_path_factory.mktemp("imported")
    write_ranks(folder / "traces")
    directory = import_trace([str(folder / "traces")], folder / "run").directory
    assert roll_up_ranks(directory, processes=1) == []
    return directory


def rows(engine: Engine, name: str) -> list[str]:
    found = engine.sql(f"SELECT * FROM {name}")
    return sorted(json.dumps(row, sort_keys=True, default=str) for row in found.rows())


@pytest.fixture(params=["many", "imported"])
def both(request: pytest.FixtureRequest) -> Iterator[tuple[Engine, Engine]]:
    """(an engine that reads roll-ups, one that reads the events)."""
    reader = RunReader(request.getfixturevalue(request.param))
    assert rolled_up(reader) == set(reader.ranks)
    assert (gathered(reader, "breakdown") is not None) == (request.param == "many")
    with_them, without = Engine(reader), Engine(reader, rolled_up=False)
    yield with_them, without
    with_them.close()
    without.close()


def test_each_kept_view_equals_the_events(both: tuple[Engine, Engine]) -> None:
    with_them, without = both
    for name in sorted(KEPT_VIEWS):
        assert rows(with_them, name) == rows(without, name)
    for name in (*SMALL_TABLES, "step_windows", "rank_extent", "collective_costs"):
        assert rows(with_them, name) == rows(without, name)
    assert len(rows(with_them, "breakdown")) > 4


def test_each_rolled_up_table_equals_the_view_over_all_events(both: tuple[Engine, Engine]) -> None:
    with_them, without = both
    for name, view in ROLLUPS.items():
        assert rows(with_them, name) == rows(without, view)
        assert rows(with_them, name)


def test_the_sandbox_reads_them_too(many: str) -> None:
    run = open_run(many)
    without = Engine(RunReader(many), rolled_up=False)
    for name in ("breakdown", "rank_steps", "steps", "run_health"):
        found = sorted(
            json.dumps(row, sort_keys=True, default=str) for row in run.sql(f"SELECT * FROM {name}").rows()
        )
        assert found == rows(without, ROLLUPS.get(name, name))


def test_rows_come_in_the_order_of_the_view(both: tuple[Engine, Engine]) -> None:
    with_them, without = both
    for name in ("breakdown", "steps_summary", "rank_summary", "host_breakdown", "run_health"):
        assert with_them.sql(f"SELECT * FROM {name}").rows() == without.sql(f"SELECT * FROM {name}").rows()


def report(directory: str) -> dict[str, Any]:
    found = job_report(open_run(directory)).to_dict()
    found.pop("run")
    return found


def test_the_report_is_the_same_with_gathered_single_and_no_rollups(tmp_path: Path) -> None:
    directory = JOB.write(tmp_path / "run")
    first = report(directory)
    assert first["stragglers"][0]["rank"] == 2
    assert gathered(RunReader(directory), "rank_steps") is None
    single = report(directory)
    assert roll_up_ranks(directory, processes=2) == []
    assert gathered(RunReader(directory), "rank_steps") is not None
    assert first == single == report(directory)


def test_a_rank_that_is_added_later_counts(tmp_path: Path) -> None:
    directory = JOB.write(tmp_path / "run", only=range(RANKS - 1))
    roll_up_ranks(directory, processes=1)
    before = gathered(RunReader(directory), "breakdown")
    assert before is not None
    JOB.write(tmp_path / "run", only=[RANKS - 1])
    reader = RunReader(directory)
    assert gathered(reader, "breakdown") is None
    assert {row["rank"] for row in open_run(directory).breakdown().rows()} == set(range(RANKS))
    roll_up_ranks(directory, processes=1)
    after = gathered(RunReader(directory), "breakdown")
    assert after is not None
    assert [
        name for name in os.listdir(tmp_path / "run" / FOLDER / "breakdown") if name.startswith("all-")
    ] == [os.path.basename(after)]
    assert report(directory)["ranks"] == report(JOB.write(tmp_path / "at once"))["ranks"]


def test_some_ranks_of_a_run_read_theirs_only(many: str) -> None:
    run = open_run(many, ranks=[1, 4])
    assert gathered(run.reader, "breakdown") is None
    assert {row["rank"] for row in run.breakdown().rows()} == {1, 4}


def test_damaged_parts_are_not_answered_for_from_a_rollup(many: str) -> None:
    part = next(part for part in RunReader(many).manifests[3].parts if part.table == "events")
    os.truncate(os.path.join(many, part.path), part.size_bytes // 2)
    reader = RunReader(many)
    assert rolled_up(reader) == set(range(RANKS)) - {3}
    assert gathered(reader, "breakdown") is None
    counted = {row["rank"]: row["events"] for row in open_run(many).summary().rows()}
    assert counted.get(3, 0) == 0
    assert counted[2] == 24


def test_a_run_that_cannot_be_written_is_answered_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = JOB.write(tmp_path / "run")

    def refuse(*_: object) -> None:
        raise PermissionError("read-only")

    monkeypatch.setattr("explorer.store.location.Location.make_folder", refuse)
    assert roll_up_ranks(directory, processes=1) == []
    assert not (tmp_path / "run" / FOLDER).exists()
    assert report(directory)["stragglers"][0]["rank"] == 2


def test_rolling_up_again_changes_nothing(many: str) -> None:
    folder = Path(many) / FOLDER
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*.parquet")}
    assert len(before) == len(names()) * (RANKS + 1) + len(SMALL_TABLES)
    assert roll_up_ranks(many, processes=1) == []
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*.parquet")} == before


def test_the_memory_says_which_ranks_are_rolled_up_and_how_many_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = JOB.write(tmp_path / "run")
    at_once: list[tuple[int, int]] = []

    def in_processes(_: str, ranks: list[int], count: int) -> list[tuple[int, str]]:
        at_once.append((len(ranks), count))
        return []

    def here(_: str, ranks: list[int]) -> list[tuple[int, str]]:
        at_once.append((len(ranks), 1))
        return []

    monkeypatch.setattr(rank_rollups, "_in_processes", in_processes)
    monkeypatch.setattr(rank_rollups, "_here", here)
    mib = 1 << 20
    reader = RunReader(directory)
    largest = max(
        sum(part.rows for part in reader.manifests[rank].parts if part.table == "events")
        for rank in range(RANKS)
    )
    one = 176 * mib + 700 * largest
    left = roll_up_ranks(directory, processes=8, memory_bytes=208 * mib + 176 * mib)
    assert [rank for rank, _ in left] == list(range(RANKS))
    assert "`ranks` makes it when it is asked for" in left[0][1]
    for memory_bytes in (208 * mib + one, 208 * mib + 2 * one - 1, 208 * mib + 2 * one, 208 * mib + 99 * one):
        assert roll_up_ranks(directory, processes=8, memory_bytes=memory_bytes) == []
    assert roll_up_ranks(directory, processes=8) == []
    assert at_once == [(0, 1), *((RANKS, count) for count in (1, 1, 2, min(8, RANKS), min(8, RANKS)))]
