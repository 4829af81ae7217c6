"""torch.compile with backends other than Inductor: every op has the line that its graph node was traced from."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from explorer import neuron_profile
from explorer.store.reader import RunReader

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.capture, pytest.mark.slow]


def body(x: Any, weight: Any) -> Any:  # the compiled function
    hidden = torch.sigmoid(x)  # activation
    hidden = hidden @ weight  # product
    return torch.tanh(hidden) + 1  # result


def line_of(mark: str) -> int:
    lines = Path(__file__).read_text().splitlines()
    return next(at for at, text in enumerate(lines, 1) if text.endswith("# " + mark))


def record(directory: Path, compiled: Callable[..., Any]) -> list[tuple[str, str, int, str, str]]:
    """(name, phase, line, attribution, precision) of every op of the second step."""
    weight = torch.ones(8, 8, requires_grad=True)
    with neuron_profile(directory, telemetry=False) as prof:
        for _ in range(2):
            compiled(torch.ones(4, 8), weight).sum().backward()
            prof.step()
    assert prof.directory is not None
    run = RunReader(prof.directory)
    sites = {row["site_id"]: row for row in run.read("sites").to_pylist()}
    return [
        (e["name"], e["phase"], sites[e["site_id"]]["line"], e["attribution"], e["precision"])
        for e in run.read("events").to_pylist()
        if e["step"] == 1 and e["category"] == "op"
    ]


def neuron(graph: Any, inputs: Any) -> Any:
    """The smallest backend: the graph as it is."""
    return graph.forward


@pytest.mark.parametrize("backend", ["aot_eager", neuron])
def test_ops_have_the_lines_of_their_graph_nodes(tmp_path: Path, backend: Any) -> None:
    torch._dynamo.reset()
    ops = record(tmp_path / "run", torch.compile(body, backend=backend))
    found = {(name, phase): (line, precision) for name, phase, line, _, precision in ops}
    assert found["aten::sigmoid", "forward"] == (line_of("activation"), "exact")
    assert found["aten::mm", "forward"] == (line_of("product"), "exact")
    assert found["aten::tanh", "forward"] == (line_of("result"), "exact")
    assert found["aten::tanh_backward", "backward"] == (line_of("result"), "exact")
    assert found["aten::mm", "backward"] == (line_of("product"), "exact")
    methods = {attribution for name, _, _, attribution, _ in ops if name in ("aten::sigmoid", "aten::tanh")}
    assert methods == {"compiled"}


def test_a_graph_compiled_before_recording_is_known_by_its_function(tmp_path: Path) -> None:
    torch._dynamo.reset()
    compiled = torch.compile(body, backend="aot_eager")
    compiled(torch.ones(4, 8), torch.ones(8, 8, requires_grad=True)).sum().backward()
    ops = record(tmp_path / "run", compiled)
    found = {name: (line, precision) for name, phase, line, _, precision in ops if phase == "forward"}
    assert found["aten::sigmoid"] == found["aten::mm"] == (line_of("the compiled function"), "coarse")
    assert found["aten::sum"][1] == "exact"
