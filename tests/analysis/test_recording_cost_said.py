"""What recording cost is the same in the views as in findings, and every face that shows times as recorded says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from explorer.cli.main import main
from tests.analysis.run_builder import RunBuilder


def run_with_cost(directory: Path, cost: bool) -> str:
    """Three steps of 10 ms: half of it an op, half Python on a line that was traced at 500 records and 1,500 calls."""
    builder = RunBuilder(directory)
    if cost:
        builder.cost = {"op_ns": 1_000.0, "line_ns": 200.0, "call_ns": 400.0, "module_ns": 500.0}
    builder.steps(3, 10_000)
    heavy, train = builder.line(5, "y = encode(x)"), builder.line(6, "loss = model(y)")
    for i in range(3):
        builder.state(heavy, i * 10_000, 5_000)
        builder.rows["host_states"][-1] |= {
            "line_records": 500,
            "skipped_calls": 1_500,
            "module_calls": 2.0,
        }
        builder.state(train, i * 10_000 + 5_000, 5_000)
        builder.op("aten::mm", i * 10_000 + 5_010, 4_980, site=train)
    return builder.write()


COST_NS = 501 * 200 + 1_500 * 400 + 2 * 500 + 1_000
"""Of a step: its lines (those of the other line too), calls, modules and its op."""


def test_views_and_findings_take_off_the_same_cost(tmp_path: Path) -> None:
    from explorer import open_run

    run = open_run(run_with_cost(tmp_path / "run", cost=True))
    assert run.sql("SELECT DISTINCT recording_ns, corrected_wall_ns FROM steps_summary").rows() == [
        {"recording_ns": COST_NS, "corrected_wall_ns": 10_000_000 - COST_NS}
    ]
    assert run.bottlenecks().step_ns == 10_000_000 - COST_NS
    assert run.sql(
        "SELECT line, cost_ns - corrected_cost_ns AS taken_off FROM lines ORDER BY line"
    ).rows() == [
        {"line": 5, "taken_off": 3 * (500 * 200 + 1_500 * 400 + 2 * 500)},
        {"line": 6, "taken_off": 3 * (200 + 1_000)},
    ]


@pytest.mark.parametrize(
    ("verb", "said"),
    [
        ("summary", "Without what recording cost a step takes 9.30 ms"),
        ("lines", "Times are as recorded"),
        ("bottlenecks", "step 9.30 ms (3 steps; 10.0 ms on average as recorded)"),
    ],
)
def test_the_faces_say_which_times_they_show(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], verb: str, said: str
) -> None:
    for cost in (True, False):
        assert main([verb, run_with_cost(tmp_path / str(cost), cost)]) == 0
        assert (said in " ".join(capsys.readouterr().out.split())) is cost
