"""A window that is cut between forward and backward pass: the backward ops still know their forward ops."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from explorer import neuron_profile  # noqa: E402
from explorer.collectors.capture import guard  # noqa: E402
from explorer.store.reader import RunReader  # noqa: E402

pytestmark = pytest.mark.capture


def program() -> None:
    weight = torch.ones(4, 4, requires_grad=True)
    product = weight @ weight
    loss = product.relu().sum()
    session = guard.active()
    assert session is not None
    (lambda: session.windows._cut_now())()
    loss.backward()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunReader:
    with neuron_profile(tmp_path_factory.mktemp("cut") / "run") as prof:
        program()
    return RunReader(str(prof.directory))


@pytest.mark.parametrize(
    ("backward", "forward", "line"), [("MmBackward0", "aten::mm", 2), ("ReluBackward0", "aten::relu", 3)]
)
def test_backward_ops_know_their_forward_ops(run: RunReader, backward: str, forward: str, line: int) -> None:
    assert len(run.manifests[0].capture["windows"]) == 2
    events = {row["event_id"]: row for row in run.read("events").to_pylist()}
    sites = {row["site_id"]: row for row in run.read("sites").to_pylist()}
    found = [row for row in events.values() if row["name"] == backward]
    assert len(found) == 1
    (row,) = found
    site = sites[row["site_id"]]
    assert (site["function"], site["line"] - program.__code__.co_firstlineno) == ("program", line)
    assert (row["attribution"], row["precision"], row["phase"]) == ("forward", "exact", "backward")
    assert events[row["forward_id"]]["name"] == forward


def test_sums_of_gradients_follow_their_parent(run: RunReader) -> None:
    events = run.read("events").to_pylist()
    sites = {row["site_id"]: row for row in run.read("sites").to_pylist()}
    accumulate = [row for row in events if row["name"].endswith("AccumulateGrad")]
    lines = {sites[row["site_id"]]["line"] - program.__code__.co_firstlineno for row in accumulate}
    assert lines == {2}
