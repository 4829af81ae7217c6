"""Real traces of several ranks against TraceLens' NCCL analysis of the same files, in whole nanoseconds.

TraceLens names a call by group and place, takes clocks as aligned, and its latency is the shortest duration of a match.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from explorer.analysis.findings import find
from explorer.analysis.ranks.stragglers import stragglers
from explorer.analysis.rules import straggler
from explorer.analysis.run import Run, open_run
from explorer.collectors.import_trace import import_trace
from tests.traces import oracle, trace


@pytest.fixture(scope="module")
def dlrm(tmp_path_factory: pytest.TempPathFactory) -> Run:
    directory = tmp_path_factory.mktemp("dlrm") / "run"
    import_trace([str(trace("nvidia/multirank_dlrm_8x_v100"))], str(directory))
    return open_run(str(directory))


def reference(table: str) -> list[dict]:
    return oracle("tracelens", "NCCL_multirank_dlrm_8x_v100")[table]["records"]


def test_kernels_known_by_name_alone_are_collectives(dlrm: Run) -> None:
    rows = dlrm.engine.sql(
        "SELECT operation, count(*) AS n, count(DISTINCT match_id) AS calls, min(ranks_seen) AS least FROM collectives_matched GROUP BY operation ORDER BY operation"
    ).rows()
    assert rows == [
        {"operation": "all_reduce", "n": 24, "calls": 3, "least": 8},
        {"operation": "all_to_all", "n": 40, "calls": 5, "least": 8},
    ]


def test_latency_skew_and_waits_equal_tracelens(dlrm: Run) -> None:
    rows = dlrm.engine.sql(
        """SELECT min(end_ns - start_ns) AS latency, max(start_ns) - min(start_ns) AS start_skew, max(end_ns) - min(end_ns) AS end_skew,
             sum(ahead)::BIGINT AS waits
           FROM (SELECT *, max(start_ns) OVER (PARTITION BY match_id) - start_ns AS ahead FROM collectives_matched)
           GROUP BY match_id ORDER BY min(start_ns)"""
    ).rows()
    wanted = [
        {
            "latency": 1000 * row["comm_latency"],
            "start_skew": 1000 * row["skew in start time"],
            "end_skew": 1000 * row["skew in end time"],
            "waits": round(8000 * row["avg_wait_time"]),
        }
        for row in reference("build_df_nccl_implicit_sync_cat")
    ]
    assert rows == wanted


def test_who_came_last_equals_tracelens(dlrm: Run) -> None:
    rows = dlrm.engine.sql(
        "SELECT last_rank, count(*) AS n FROM collective_waits WHERE rank = last_rank GROUP BY last_rank"
    ).rows()
    last = {row["last_rank"]: row["n"] for row in rows}
    wanted = {row["rank"]: row["times_arrived_last"] for row in reference("build_df_straggler_summary")}
    assert last == {rank: times for rank, times in wanted.items() if times}


def test_aligned_latency_lies_within_the_clocks_residual_of_tracelens(dlrm: Run) -> None:
    rows = dlrm.engine.sql(
        "SELECT max(end_ns) - any_value(last_arrival_ns) AS ns, max(residual_ns) AS residual FROM collective_waits GROUP BY match_id ORDER BY min(arrival_ns)"
    ).rows()
    for row, wanted in zip(rows, reference("build_df_nccl_implicit_sync_cat"), strict=True):
        # Theirs is the shortest call as recorded, in whole microseconds.
        assert row["ns"] == pytest.approx(1000 * wanted["comm_latency"], abs=2 * row["residual"] + 1_000)
        assert row["residual"] < 2_000


def test_the_rank_that_waits_least_holds_the_others_up(dlrm: Run) -> None:
    found = stragglers(dlrm.engine)
    least = min(reference("build_df_straggler_summary"), key=lambda row: row["total_wait_time_us"])
    assert found[0].rank == least["rank"] == 7
    assert found[0].pattern == "unknown"  # one step says nothing about how steady it is


def test_what_explains_little_of_a_delay_is_not_given_as_its_cause(dlrm: Run) -> None:
    late = stragglers(dlrm.engine)[0]
    assert 0 < late.causes[0].more_ns < 0.1 * late.delay_ns
    finding = find(dlrm, rules=[straggler.RULE])[0]
    assert finding.title == "Rank 7 holds the others up"
    assert finding.advice == (
        "It is last in 1 of 1 step. Its path shows nothing it does so much more of: look at its device's clocks, its link and its "
        "neighbours on the host."
    )
    assert (finding.saving.low, finding.confidence) == (0, "low")


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("NCCL_hta_nccl_parser_config", "nvidia/hta_nccl_parser_config.json.gz"),
        ("NCCL_tl_mi300_resnet_act_checkpoint", "amd/tl_mi300_resnet_act_checkpoint.json.gz"),
    ],
)
def test_bandwidths_equal_tracelens(name: str, file: str, tmp_path: Path) -> None:
    """One rank: nobody is waited for, so latency is the call's own; theirs are GiB per second."""
    import_trace([str(trace(file))], str(tmp_path / "run"))
    rows = open_run(str(tmp_path / "run")).sql(
        """SELECT duration_ns, size_bytes, algorithm_bandwidth / 1073741824 AS algorithm, bus_bandwidth / 1073741824 AS bus
           FROM collective_costs WHERE operation = 'all_reduce' AND size_bytes > 0"""
    )
    ours = sorted((row["duration_ns"], row["algorithm"], row["bus"]) for row in rows.rows())
    wanted = sorted(
        (round(1000 * row["comm_latency"]), row["algo bw (GB/s)"], row["bus bw (GB/s)"])
        for row in oracle("tracelens", name)["build_df_nccl_implicit_sync_cat"]["records"]
        if row["Collective name"] == "allreduce" and row["Full msg size (MB)"]
    )
    assert wanted
    assert len(ours) == len(wanted)
    for one, other in zip(ours, wanted):
        assert one[0] == pytest.approx(other[0], abs=1)
        assert one[1:] == pytest.approx(other[1:], rel=1e-6)
