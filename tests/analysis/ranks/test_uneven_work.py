"""A rank that is late because it is given more, one that is late because the system took its processor, and one that does
something else."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from explorer.analysis.findings import find
from explorer.analysis.ranks.stragglers import stragglers
from explorer.analysis.rules import load_imbalance, straggler
from explorer.analysis.run import Run, open_run
from explorer.model.finding import Finding
from explorer.store.writer import RunWriter
from tests.analysis.ranks.job import SLOW, Job

EXPERT, EMPTY, EXCHANGE, SAVE = 20, 21, 22, 23
CODE = {
    EXPERT: "done = expert(mine)",
    EMPTY: "back = torch.empty_like(tokens)",
    EXCHANGE: "dist.all_to_all_single(back, done)",
    SAVE: "torch.save(net.state_dict(), path)",
}
ROW_NS = 10_000


def experts(
    directory: Path, rows: list[int], late: Mapping[tuple[int, int], tuple[int, int]], steps: int = 10
) -> Run:
    """Ranks whose expert works on so many rows in each step, all of which they then exchange. `late`: by rank and step a line
    and how long the rank is held up there, in ns."""
    clock = 10**15
    writers = [RunWriter(directory, rank=rank, made_by="capture") for rank in range(len(rows))]
    events: list[list[dict[str, object]]] = [[] for _ in rows]
    states: list[list[dict[str, object]]] = [[] for _ in rows]
    marks = []
    for step in range(steps):
        arrivals = []
        for rank, count in enumerate(rows):
            at = clock
            # The rows vary a little from step to step, and the time with them.
            busy = ROW_NS * (count + step % 3)
            line, held = late.get((rank, step), (EMPTY, 0))
            for site, length, name in (
                (EXPERT, busy, "aten::linear"),
                (EMPTY, 10_000, "aten::empty_like"),
                (line, held, ""),
            ):
                if name:
                    events[rank].append(
                        {"event_id": 4 * step + site - EXPERT, "track_id": 0, "category": "op", "name": name, "start_ns": at,
                         "duration_ns": length, "self_ns": length, "step": step, "site_id": site}
                    )  # fmt: skip
                states[rank].append({"track_id": 0, "start_ns": at, "duration_ns": length, "site_id": site})
                at += length
            arrivals.append(at)
        end = max(arrivals) + 50_000
        for rank, at in enumerate(arrivals):
            events[rank].append(
                {"event_id": 4 * step + 3, "track_id": 0, "category": "collective", "name": "gloo:all_to_all", "start_ns": at,
                 "duration_ns": end - at, "self_ns": end - at, "step": step, "site_id": EXCHANGE}
            )  # fmt: skip
            states[rank].append({"track_id": 0, "start_ns": at, "duration_ns": end - at, "site_id": EXCHANGE})
        marks.append({"step": step, "start_ns": clock, "duration_ns": end - clock, "complete": True})
        clock = end
    for rank, (writer, count) in enumerate(zip(writers, rows, strict=True)):
        with writer:
            writer.manifest.host = {"hostname": "one"}
            writer.write("tracks", [{"track_id": 0, "kind": "thread", "device_type": "cpu", "label": "main"}])
            writer.write("events", events[rank])
            writer.write("host_states", [state for state in states[rank] if state["duration_ns"]])
            writer.write("steps", marks)
            writer.write(
                "collectives",
                [
                    {"event_id": 4 * step + 3, "side": "host", "group": "0", "operation": "all_to_all",
                     "size_bytes": 1024 * (count + step % 3), "group_size": len(rows), "sequence": step}
                    for step in range(steps)
                ],
            )  # fmt: skip
            writer.write(
                "sites",
                [
                    {"site_id": n, "file": "train.py", "line": n, "function": "step", "code": code, "is_user": True}
                    for n, code in CODE.items()
                ],
            )  # fmt: skip
    return open_run(str(directory))


def said(run: Run) -> list[Finding]:
    return list(find(run, rules=[straggler.RULE, load_imbalance.RULE]))


def test_ranks_that_are_given_more_are_one_finding(tmp_path: Path) -> None:
    found = said(experts(tmp_path / "run", [100, 100, 100, 400], {}))
    assert [item.title for item in found] == ["Uneven load of experts across ranks"]
    assert [line.line for line in found[0].lines] == [EXPERT]


def test_interruptions_beside_uneven_work_are_no_straggler(tmp_path: Path) -> None:
    # Rank 0 loses 5 ms in two of ten steps of about 4 ms, where it has nothing to do but to allocate.
    late = {(0, 2): (EMPTY, 5_000_000), (0, 7): (EXPERT, 5_000_000)}
    run = experts(tmp_path / "run", [100, 100, 100, 400], late)
    assert [(item.rank, item.pattern) for item in stragglers(run.engine)] == [
        (3, "persistent"),
        (0, "random"),
    ]
    assert [item.title for item in said(run)] == ["Uneven load of experts across ranks"]


def test_what_comes_again_beside_uneven_work_is_a_straggler(tmp_path: Path) -> None:
    late = {(0, step): (SAVE, 8_000_000) for step in (2, 5, 8)}
    found = said(experts(tmp_path / "run", [100, 100, 100, 400], late))
    assert sorted(item.title for item in found) == [
        "Rank 0 holds the others up at train.py:23",
        "Uneven load of experts across ranks",
    ]


def test_a_rank_interrupted_at_any_line_is_no_sure_straggler(tmp_path: Path) -> None:
    late = {(1, step): (line, 2_000_000) for step, line in ((1, EXPERT), (4, EMPTY), (7, SAVE))}
    run = experts(tmp_path / "run", [100, 100, 100, 100], late)
    (found,) = said(run)
    assert found.title == "Rank 1 holds the others up"
    assert (found.confidence, found.lines) == ("low", ())
    assert found.advice.startswith(
        "It is last in 3 of 10 steps (random). Nothing that it does more of comes again"
    )
    assert "an interruption by the system or by other programs looks the same" in found.advice


@pytest.mark.parametrize(("steps", "confidence"), [((3,), "low"), ((3, 9, 17), "medium")])
def test_one_late_step_is_said_and_not_sure(tmp_path: Path, steps: tuple[int, ...], confidence: str) -> None:
    directory = Job(extra={(2, step): 9_000_000 for step in steps}).write(tmp_path / "run")
    (found,) = said(open_run(directory))
    assert found.confidence == confidence
    if len(steps) == 1:
        assert found.title == "Rank 2 holds the others up"
        assert "In that step it spent 9.00 ms more at train.py:11." in found.advice
    else:
        assert found.title == f"Rank 2 holds the others up at train.py:{SLOW}"
        assert (
            "It is last in 3 of 30 steps (random). Against the median rank it runs more Python"
            in found.advice
        )


def test_causes_say_in_how_many_steps_they_are_there(tmp_path: Path) -> None:
    late = {(1, step): (line, 2_000_000) for step, line in ((1, EMPTY), (4, SAVE), (7, SAVE))}
    run = experts(tmp_path / "run", [100, 100, 100, 100], late)
    (item,) = stragglers(run.engine)
    assert [(cause.site_id, cause.steps, cause.of_steps) for cause in item.causes[:2]] == [
        (SAVE, 2, 3),
        (EMPTY, 1, 3),
    ]
    assert item.cause == item.causes[0]
