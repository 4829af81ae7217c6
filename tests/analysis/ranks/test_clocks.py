"""Clocks shifted and skewed on purpose are put right, and the stated residual covers what is left."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from explorer.analysis.ranks.clock_fit import fit_clock
from explorer.analysis.run import open_run
from explorer.store.writer import RunWriter
from tests.analysis.ranks.job import Job

OFFSETS = (0, 5_000_000, -3_000_000, 700_000)
DRIFT = (0.0, 40e-6, -25e-6, 0.0)


@given(
    st.integers(-(10**9), 10**9),
    st.floats(-1e-4, 1e-4),
    st.integers(0, 5),
    st.integers(0, 1000),
)
def test_a_line_is_found_through_outliers(offset: int, drift: float, bad: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    time = np.sort(random.integers(0, 10**10, 60))
    noise = random.normal(0, 1000, 60)
    difference = offset + drift * time + noise
    difference[random.choice(60, bad, replace=False)] += 10**8
    fit = fit_clock(time, difference)
    predicted = fit.offset_ns + fit.drift * (time - fit.reference_ns)
    # Unfitted small drifts stay inside the residual that is stated.
    assert np.median(np.abs(predicted - offset - drift * time)) <= 3 * max(fit.residual_ns, 1000)


@pytest.mark.parametrize("with_sequence", [True, False])
def test_shifted_and_skewed_clocks(tmp_path: Path, with_sequence: bool) -> None:
    job = Job(offset_ns=OFFSETS, drift=DRIFT, with_sequence=with_sequence, steps=40, work_ns=100_000_000)
    run = open_run(job.write(tmp_path / "run"))
    clocks = {row["rank"]: row for row in run.view("rank_clocks")}
    middle = 40 * 100_200_000 / 2
    for rank in range(4):
        row = clocks[rank]
        assert row["matched"] == 40
        assert row["residual_ns"] < 5_000
        assert row["drift_ppb"] == pytest.approx(DRIFT[rank] * 1e9, abs=300)
        seen = row["offset_ns"] + row["drift_ppb"] / 1e9 * (10**15 + middle - row["reference_ns"])
        assert seen == pytest.approx(OFFSETS[rank] + DRIFT[rank] * middle, abs=5_000)


def test_ranks_of_one_host_share_a_clock(tmp_path: Path) -> None:
    job = Job(offset_ns=(0, 0, 9_000_000, 9_000_000), hosts=("a", "a", "b", "b"))
    clocks = open_run(job.write(tmp_path / "run")).view("rank_clocks").rows()
    assert [row["host"] for row in clocks] == ["a", "a", "b", "b"]
    assert [row["offset_ns"] for row in clocks[:2]] == [0.0, 0.0]
    assert clocks[2]["offset_ns"] == clocks[3]["offset_ns"] == pytest.approx(9_000_000, abs=3_000)


def test_waits_after_alignment_equal_the_truth(tmp_path: Path) -> None:
    extra = {(2, step): 500_000 for step in range(30)}
    run = open_run(Job(offset_ns=OFFSETS, extra=extra).write(tmp_path / "run"))
    rows = run.view("collective_waits").rows()
    assert {row["last_rank"] for row in rows} == {2}
    waits = [row["wait_ns"] for row in rows if row["rank"] != 2]
    assert np.median(waits) == pytest.approx(500_000, abs=5_000)
    assert np.median([row["transfer_ns"] for row in rows]) == pytest.approx(200_000, abs=5_000)
    assert all(row["is_last"] for row in rows if row["rank"] == 2)


def test_a_rank_without_common_communication_has_no_residual(tmp_path: Path) -> None:
    Job(ranks=2).write(tmp_path / "run")
    Job(ranks=3, steps=0).write(tmp_path / "run", only=[2])
    rows = open_run(tmp_path / "run").view("rank_clocks").rows()
    assert [row["residual_ns"] is None for row in rows] == [False, False, True]


def test_ranks_of_one_host_agree_without_any_call_that_ends_on_all(tmp_path: Path) -> None:
    """A pipeline: sends and receives alone. Processes of one host read one clock; of another host nothing is known."""
    for hosts, wanted in ((("one", "one"), [1000.0, 1000.0]), (("one", "two"), [None, None])):
        directory = tmp_path / "-".join(hosts)
        for rank in range(2):
            with RunWriter(directory, rank=rank, made_by="capture") as writer:
                writer.manifest.host = {"hostname": hosts[rank]}
                writer.write("tracks", [{"track_id": 7, "kind": "stream", "label": "s"}])
        rows = open_run(directory).engine.sql("SELECT residual_ns FROM rank_clocks ORDER BY rank").rows()
        assert [row["residual_ns"] for row in rows] == wanted
