"""The straggler, its pattern, its cost and its line are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from explorer.analysis.ranks.stragglers import stragglers
from explorer.analysis.run import open_run
from tests.analysis.ranks.job import SLOW, Job


def test_a_persistent_straggler_and_its_line(tmp_path: Path) -> None:
    job = Job(extra={(2, step): 300_000 for step in range(30)}, offset_ns=(0, 10**7, -(10**7), 500))
    found = stragglers(open_run(job.write(tmp_path / "run")).engine)
    assert [(item.rank, item.pattern, item.steps_last) for item in found] == [(2, "persistent", 30)]
    assert found[0].delay_ns == pytest.approx(300_000, abs=4_000)
    assert found[0].share == pytest.approx(0.2, abs=0.01)
    cause = found[0].causes[0]
    assert (cause.site_id, cause.file, cause.line, cause.kind) == (SLOW, "train.py", SLOW, "python")
    assert cause.more_ns == pytest.approx(300_000, abs=4_000)


def test_random_delays_and_since_when(tmp_path: Path) -> None:
    job = Job(extra={(1, step): 2_000_000 for step in (7, 19)})
    found = stragglers(open_run(job.write(tmp_path / "run")).engine)
    assert [(item.rank, item.pattern, item.first_step, item.steps_last) for item in found] == [
        (1, "random", 7, 2)
    ]
    assert found[0].causes[0].site_id == SLOW


def test_equal_ranks_have_no_straggler(tmp_path: Path) -> None:
    assert stragglers(open_run(Job().write(tmp_path / "run")).engine) == []


def test_one_rank_has_none(tmp_path: Path) -> None:
    assert stragglers(open_run(Job(ranks=1).write(tmp_path / "run")).engine) == []


def test_a_missing_rank_does_not_stop_the_answer(tmp_path: Path) -> None:
    job = Job(extra={(2, step): 300_000 for step in range(30)})
    found = stragglers(open_run(job.write(tmp_path / "run", only=[0, 2, 3])).engine)
    assert [item.rank for item in found] == [2]
