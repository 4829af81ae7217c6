"""Rules over several ranks, on jobs with known truth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from explorer.analysis.findings import find
from explorer.analysis.ranks.job_report import job_report
from explorer.analysis.rules import (
    exposed_communication,
    load_imbalance,
    pipeline_bubble,
    slow_link,
    small_collectives,
    straggler,
)
from explorer.analysis.run import open_run
from explorer.model.finding import Findings
from explorer.store.writer import RunWriter
from tests.analysis.ranks.job import SLOW, SYNC, Job


def ask(directory: str, rule: Any) -> Findings:
    return find(open_run(directory), rules=[rule.RULE])


def test_the_straggler_is_named_with_its_line(tmp_path: Path) -> None:
    directory = Job(extra={(2, step): 300_000 for step in range(30)}).write(tmp_path / "run")
    finding = ask(directory, straggler)[0]
    assert finding.title == "Rank 2 holds the others up at train.py:11"
    assert finding.lines[0].site_id == SLOW
    assert finding.saving.expected == pytest.approx(300_000, rel=0.05)
    assert "persistent" in finding.advice
    assert "it runs more Python" in finding.advice
    evidence = finding.evidence[0]
    assert "last at 30 of 30 calls" in evidence.statement
    assert open_run(directory).sql(evidence.sql).rows()[0]["last_calls"] == 30
    # One call as all its ranks saw it, the late one first.
    assert evidence.events[0].startswith("2:")
    assert {event.split(":")[0] for event in evidence.events} == {"0", "1", "2", "3"}
    assert finding.ranks == (2,)


def test_rules_about_events_say_which_rank_they_looked_at(tmp_path: Path) -> None:
    directory = Job(transfer_ns=900_000, work_ns=500_000).write(tmp_path / "run")
    finding = ask(directory, exposed_communication)[0]
    assert (
        f"Only rank {finding.ranks[0]}, the slowest, was looked at; rules that compare ranks look at all."
        in finding.caveats
    )
    # Nothing of the other ranks' events is read.
    for rank in range(4):
        if rank != finding.ranks[0]:
            for part in (tmp_path / "run" / "events" / f"rank={rank}").iterdir():
                data = bytearray(part.read_bytes())
                data[4:-4] = b"x" * (len(data) - 8)
                part.write_bytes(data)
    again = ask(directory, exposed_communication)[0]
    assert (again.saving, again.evidence) == (finding.saving, finding.evidence)


def test_equal_ranks_raise_nothing(tmp_path: Path) -> None:
    run = open_run(Job().write(tmp_path / "run"))
    findings = find(
        run, rules=[module.RULE for module in (straggler, load_imbalance, slow_link, small_collectives)]
    )
    assert list(findings) == []


def test_exposed_communication_counts_transfer_not_waiting(tmp_path: Path) -> None:
    extra = {(1, step): 400_000 for step in range(30)}
    directory = Job(ranks=2, work_ns=500_000, transfer_ns=300_000, extra=extra, jitter_ns=0).write(
        tmp_path / "run"
    )
    finding = ask(directory, exposed_communication)[0]
    # Rank 0 spends 700 us of each step in the call; 400 us of them it waits for rank 1.
    assert finding.saving.high == 300_000
    assert "400 µs per step of it is waiting for late ranks" in finding.caveats[0]


def messages(directory: Path, rows: list[dict[str, Any]], ranks: int, steps: int, step_ns: int) -> str:
    """A run of communication kernels only: rows hold rank, step, start (in the step), length, site, and collectives' columns."""
    for rank in range(ranks):
        mine = [row for row in rows if row["rank"] == rank]
        with RunWriter(directory, rank=rank) as writer:
            writer.write(
                "tracks",
                [
                    {
                        "track_id": 7,
                        "kind": "stream",
                        "device_type": "cuda",
                        "device_index": rank,
                        "label": "s",
                    }
                ],
            )
            writer.write(
                "sites",
                [{"site_id": SYNC, "file": "train.py", "line": SYNC, "function": "f", "is_user": True}],
            )
            writer.write(
                "events",
                [
                    {
                        "event_id": number,
                        "track_id": 7,
                        "category": "collective",
                        "name": "nccl",
                        "start_ns": row["step"] * step_ns + row["start"],
                        "duration_ns": row["length"],
                        "self_ns": row["length"],
                        "step": row["step"],
                        "site_id": SYNC,
                    }
                    for number, row in enumerate(mine)
                ],
            )
            known = ("operation", "size_bytes", "peer", "sequence", "group", "group_size", "group_ranks")
            writer.write(
                "collectives",
                [
                    {"event_id": number, "side": "device", **{key: row[key] for key in known if key in row}}
                    for number, row in enumerate(mine)
                ],
            )
            writer.write(
                "steps",
                [
                    {"step": n, "start_ns": n * step_ns, "duration_ns": step_ns, "complete": True}
                    for n in range(steps)
                ],
            )
    return str(directory)


def test_many_small_messages_name_their_line(tmp_path: Path) -> None:
    rows = [
        {
            "rank": 0,
            "step": step,
            "start": 1000 * n,
            "length": 800,
            "operation": "all_reduce",
            "size_bytes": 4096,
        }
        for step in range(6)
        for n in range(20)
    ]
    directory = messages(tmp_path / "run", rows, 1, 6, 50_000)
    finding = ask(directory, small_collectives)[0]
    assert [line.line for line in finding.lines] == [SYNC]
    assert finding.evidence[0].statement.startswith("20 small messages per step, 80 KiB together, take 16 µs")
    # 19 of 20 calls' cost at most, half of that expected.
    assert (finding.saving.expected, finding.saving.high) == (7_600, 15_200)


def test_a_slow_pair_is_found_among_equal_ones(tmp_path: Path) -> None:
    rows = []
    for step in range(8):
        for sender, receiver in ((0, 1), (1, 2), (2, 3), (3, 0)):
            length = 9_000 if (sender, receiver) == (1, 2) else 3_000
            start = 12_000 * sender
            for rank, operation, peer in ((sender, "send", receiver), (receiver, "recv", sender)):
                rows.append(
                    {
                        "rank": rank,
                        "step": step,
                        "start": start,
                        "length": length,
                        "operation": operation,
                        "peer": peer,
                        "size_bytes": 1 << 20,
                    }
                )
        for rank in range(4):
            rows.append(
                {
                    "rank": rank,
                    "step": step,
                    "start": 48_500,
                    "length": 1_000,
                    "operation": "barrier",
                    "group": "0",
                    "sequence": step,
                }
            )
    directory = messages(tmp_path / "run", rows, 4, 8, 50_000)
    links = job_report(open_run(directory)).links
    assert [link["ranks"] for link in links] == [[1, 2], [0, 1], [0, 3], [2, 3]]
    assert links[0] == {
        "ranks": [1, 2],
        "calls": 8,
        "total_bytes": 8 << 20,
        "latency_ns": 9_000,
        "bandwidth": (1 << 20) * 1e9 / 9_000,
    }
    findings = ask(directory, slow_link)
    assert [finding.title for finding in findings] == ["Slow link between ranks [1, 2]"]
    assert "takes 9 µs, 3 times as long" in findings[0].evidence[0].statement
    assert findings[0].saving.high == 6_000


def test_stages_that_wait_are_a_pipeline_bubble(tmp_path: Path) -> None:
    rows = []
    for step in range(6):
        rows.append(
            {
                "rank": 0,
                "step": step,
                "start": 20_000,
                "length": 2_000,
                "operation": "send",
                "peer": 1,
                "size_bytes": 1 << 20,
            }
        )
        rows.append(
            {
                "rank": 1,
                "step": step,
                "start": 1_000,
                "length": 21_000,
                "operation": "recv",
                "peer": 0,
                "size_bytes": 1 << 20,
            }
        )
        for rank in range(2):
            rows.append(
                {
                    "rank": rank,
                    "step": step,
                    "start": 48_000,
                    "length": 1_000,
                    "operation": "barrier",
                    "group": "0",
                    "sequence": step,
                }
            )
    directory = messages(tmp_path / "run", rows, 2, 6, 50_000)
    run = open_run(directory)
    waits = run.engine.sql(
        "SELECT rank, wait_ns, transfer_ns FROM collective_waits WHERE operation = 'send_recv' AND step = 3 ORDER BY rank"
    ).rows()
    assert waits == [
        {"rank": 0, "wait_ns": 0, "transfer_ns": 2_000},
        {"rank": 1, "wait_ns": 19_000, "transfer_ns": 2_000},
    ]
    finding = find(run, rules=[pipeline_bubble.RULE])[0]
    assert finding.evidence[0].statement == (
        "A stage waits 9.5 µs of each step for its neighbours on average; rank 1 waits 19 µs."
    )
    assert [line.line for line in finding.lines] == [SYNC]
    assert finding.saving.high == 9_500


def test_one_rank_is_not_checked(tmp_path: Path) -> None:
    findings = ask(Job(ranks=1).write(tmp_path / "run"), straggler)
    assert [item.reason for item in findings.not_checked] == ["the run holds one rank only"]


def test_groups_of_one_name_in_other_ranks_are_other_groups(tmp_path: Path) -> None:
    """Two pairs call their group "tp", each at its own time."""
    rows = [
        {
            "rank": rank,
            "step": step,
            "start": 5_000 * (rank // 2) + 300 * (rank % 2),
            "length": 1_000,
            "operation": "all_reduce",
            "size_bytes": 64,
            "group": "tp",
            "group_size": 2,
            "group_ranks": str([rank // 2 * 2, rank // 2 * 2 + 1]),
            "sequence": step,
        }
        for step in range(3)
        for rank in range(4)
    ]
    run = open_run(messages(tmp_path / "run", rows, 4, 3, 50_000))
    matched = run.engine.sql(
        "SELECT match_id, list(rank ORDER BY rank) AS ranks FROM collectives_matched GROUP BY match_id"
    ).rows()
    assert sorted(row["ranks"] for row in matched) == [[0, 1]] * 3 + [[2, 3]] * 3
    report = run.engine.sql("SELECT group_name, calls FROM group_bandwidth ORDER BY members").rows()
    assert report == [{"group_name": "tp", "calls": 3}] * 2


def test_a_rank_that_does_not_know_its_group_joins_the_only_one_of_the_name(tmp_path: Path) -> None:
    rows = [
        {
            "rank": rank,
            "step": 0,
            "start": 0,
            "length": 1_000,
            "operation": "all_reduce",
            "group": "dp",
            "group_size": 2,
            "group_ranks": "[0, 1]" if rank else None,
            "sequence": 4,
        }
        for rank in range(2)
    ]
    run = open_run(messages(tmp_path / "run", rows, 2, 1, 50_000))
    assert {
        row["ranks_seen"] for row in run.engine.sql("SELECT ranks_seen FROM collectives_matched").rows()
    } == {2}


def test_a_late_device_that_is_throttled_is_said_to_be(tmp_path: Path) -> None:
    """Kernels of rank 2 take twice as long, on a clock that its telemetry shows as halved now and then."""
    for rank in range(3):
        with RunWriter(tmp_path / "run", rank=rank, made_by="capture") as writer:
            writer.manifest.host = {"hostname": "one"}
            stream = {"kind": "stream", "device_type": "cuda", "device_index": rank, "label": f"cuda:{rank}"}
            writer.write("tracks", [{"track_id": 7, **stream}, {"track_id": 8, **stream, "kind": "counter"}])
            events, calls, samples = [], [], []
            for step in range(6):
                kernel = 800 if rank == 2 else 400
                begin = 1_000_000 * step
                for number, (category, start, length) in enumerate(
                    (
                        ("kernel", begin, 1000 * kernel),
                        ("collective", begin + 1000 * kernel, 900_000 - 1000 * kernel),
                    )
                ):
                    event = {
                        "event_id": 2 * step + number,
                        "track_id": 7,
                        "category": category,
                        "name": category,
                    }
                    events.append(
                        {**event, "start_ns": start, "duration_ns": length, "self_ns": length, "step": step}
                    )
                call = {"event_id": 2 * step + 1, "side": "device", "group": "0", "sequence": step}
                calls.append({**call, "operation": "all_reduce", "group_size": 3})
                for name, value in (
                    ("throttled", float(rank == 2 and step > 1)),
                    ("sm_clock", 700 if rank == 2 and step > 1 else 1400),
                ):
                    samples.append({"track_id": 8, "timestamp_ns": begin + 10, "name": name, "value": value})
            writer.write("events", events)
            writer.write("collectives", calls)
            writer.write("counters", samples)
            writer.write(
                "steps",
                [
                    {"step": step, "start_ns": 1_000_000 * step, "duration_ns": 1_000_000, "complete": True}
                    for step in range(6)
                ],
            )
    finding = ask(str(tmp_path / "run"), straggler)[0]
    assert finding.title == "Rank 2 holds the others up"
    assert "Against the median rank its device computes longer" in finding.advice
    assert "cuda:2 is throttled." in finding.advice
    assert finding.evidence[1].statement.startswith("cuda:2 was throttled in 66.7 % of 6 samples")
