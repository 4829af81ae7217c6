"""Two hand-built runs: the changes of every table add up to the change of the step."""

from __future__ import annotations

from pathlib import Path

import pytest

from explorer.analysis.diff.comparison import Comparison
from explorer.analysis.run import open_run
from explorer.store.writer import RunWriter
from tests.analysis.critical_path.test_walk import TRACKS, event


def write(
    directory: Path,
    op_ns: int,
    text: str,
    *,
    shapes: str = "[[8, 8]]",
    steps: int = 10,
    line: int = 2,
    core_percent: float = 100.0,
) -> str:
    length = op_ns + 200
    rows = [
        event(n, 1, "op", n * length + 100, n * length + 100 + op_ns, site_id=line, phase="forward", step=n)
        | {"name": "aten::mm", "shapes": shapes}
        for n in range(steps)
    ]
    with RunWriter(directory) as writer:
        writer.write("tracks", TRACKS)
        writer.write("events", rows)
        writer.write(
            "sites",
            [
                {
                    "site_id": n,
                    "file": "a.py",
                    "line": n,
                    "function": "f",
                    "code": f"code {n}",
                    "is_user": True,
                }
                for n in (1, 2, 3)
            ],
        )
        writer.write(
            "host_states", [{"track_id": 1, "start_ns": 0, "duration_ns": steps * length, "site_id": 1}]
        )
        writer.write(
            "counters",
            [
                {"track_id": 1, "timestamp_ns": length, "name": name, "value": value, "unit": "%"}
                for name, value in (("machine.cpu", 100.0), ("process.cpu", core_percent))
            ],
        )
        writer.write("sources", [{"file": "a.py", "sha256": "0", "text": text}])
        writer.write(
            "steps",
            [
                {"step": n, "start_ns": n * length, "duration_ns": length, "complete": True}
                for n in range(steps)
            ],
        )
    return writer.directory


@pytest.fixture
def comparison(tmp_path: Path) -> Comparison:
    before = write(tmp_path / "a", 1000, "loop()\nx = mm(a, b)\n")
    after = write(tmp_path / "b", 1300, "loop()\nnew()\nx = mm(a, b)\n", line=3)
    return open_run(before).compare(open_run(after))


def test_the_change_is_found_and_fully_explained(comparison: Comparison) -> None:
    assert (comparison.before_ns, comparison.after_ns) == (1200, 1500)
    assert comparison.verdict.answer == "slower"
    assert comparison.comparable
    for name, rows in comparison.explained.items():
        assert sum(row.change_ns for row in rows) == 300, name


def test_a_line_is_followed_through_the_edit(comparison: Comparison) -> None:
    first = comparison.explained["line"][0]
    assert (first.key, first.before_ns, first.after_ns, first.status, first.detail) == (
        "a.py:3",
        1000,
        1300,
        "same",
        "code 3",
    )


def test_other_shapes_block_the_comparison(tmp_path: Path) -> None:
    before, after = write(tmp_path / "a", 1000, "x"), write(tmp_path / "b", 1000, "x", shapes="[[16, 8]]")
    result = open_run(before).compare(open_run(after))
    assert [(d.what, d.weight) for d in result.differences] == [("input shapes", "blocks")]
    assert not result.comparable
    assert result.to_dict()["comparable"] is False


def test_a_run_that_others_held_up_is_said(tmp_path: Path) -> None:
    text = "loop()\nx = mm(a, b)\n"
    quiet, busy = (open_run(write(tmp_path / str(had), 1000, text, core_percent=had)) for had in (98.0, 4.0))
    assert [(d.what, d.before, d.after, d.weight) for d in quiet.compare(busy).differences] == [
        ("other programs on the processor:", "none known", "yes; this one had 4 % of a core", "note")
    ]


def test_a_run_against_itself(tmp_path: Path) -> None:
    run = open_run(write(tmp_path / "a", 1000, "x"))
    result = run.compare(run)
    assert result.verdict.answer == "no_significant_change"
    assert all(
        row.change_ns == 0 and row.status == "same" for rows in result.explained.values() for row in rows
    )
