"""The verbs that answer in another tool's definitions, on a real trace."""

from __future__ import annotations

import json

import pytest

from explorer.cli.main import main
from tests.analysis.imported import imported
from tests.traces import all_traces

NAME = "nvidia/multirank_dlrm_8x_v100/worker1_step_12.1694128201556.pt.trace.json.gz"
pytestmark = pytest.mark.skipif(
    NAME not in all_traces(), reason="no real traces: set NE_TRACES to their folder"
)


@pytest.fixture(scope="module")
def directory() -> str:
    return imported(NAME).directory


def test_breakdown_in_the_terms_of_hta(directory: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["breakdown", directory, "--mode", "hta"]) == 0
    words = capsys.readouterr().out.split()
    assert words[-5:] == ["18749.00", "1246.00", "11075.00", "6428.00", "2.47"]


@pytest.mark.parametrize(
    ("arguments", "schema", "key"),
    [
        (["breakdown", "--mode", "tracelens"], "breakdown-tracelens", "computation_time_ms"),
        (["kernels", "--mode", "hta"], "kernels-hta", "total_us"),
        (["kernels", "--mode", "tracelens"], "kernels-tracelens", "sum_us"),
        (["gaps", "--mode", "hta"], "gaps-hta", "idle_category"),
        (["launches", "--mode", "hta"], "launches-hta", "launch_delay_us"),
        (["launches", "--queue", "--mode", "hta"], "queue-hta", "mean"),
        (["launches"], "launches", "delay_ns"),
        (["launches", "--queue"], "queue_depth", "empty_share"),
    ],
)
def test_documents(
    directory: str, capsys: pytest.CaptureFixture[str], arguments: list[str], schema: str, key: str
) -> None:
    assert main([arguments[0], directory, *arguments[1:], "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == f"neuron-explorer/{schema}/1"
    assert key in document["rows"][0]
    assert main([arguments[0], directory, *arguments[1:]]) == 0


def test_a_mode_a_tool_does_not_have(directory: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["launches", directory, "--mode", "tracelens"]) == 2
    assert "native, hta" in capsys.readouterr().err
