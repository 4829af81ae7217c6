"""torch.compile: kernels and ops of compiled graphs have the nn.Module of their graph nodes, by the names of eager recording."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from explorer.store.reader import RunReader

pytest.importorskip("torch")
pytestmark = [pytest.mark.capture, pytest.mark.slow]

PROGRAM = """\
import sys
import torch
from torch import nn
from explorer import neuron_profile

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear1 = nn.Linear(8, 16)
        self.act = nn.Sigmoid()
        self.linear2 = nn.Linear(16, 8)

    def forward(self, x):
        return x + self.linear2(self.act(self.linear1(x)))

class Stack(nn.Module):
    def __init__(self, pause):
        super().__init__()
        self.layers = nn.ModuleList([Block(), Block()])
        self.pause = pause

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
            if self.pause:
                torch._dynamo.graph_break()
        return x

class Net(nn.Module):
    def __init__(self, pause):
        super().__init__()
        self.encoder = Stack(pause)
        self.head = nn.Linear(8, 4)

    def forward(self, x):
        return torch.tanh(self.head(self.encoder(x)))

directory, how, backend = sys.argv[1:]
torch.manual_seed(0)
net = Net(pause=how == "breaks")
backend = (lambda graph, inputs: graph.forward) if backend == "own" else backend
call = net
with neuron_profile(directory, telemetry=False) as prof:
    if how in ("whole", "breaks"):
        call = torch.compile(net, backend=backend)
    elif how == "function":
        call = torch.compile(lambda x: net(x), backend=backend)
    elif how == "parts":
        for layer in net.encoder.layers:
            layer.compile(backend=backend)
    elif how == "inner":
        net.encoder = torch.compile(net.encoder, backend=backend)
    for _ in range(2):
        call(torch.ones(4, 8)).sum().backward()
        prof.step()
"""


def record(folder: Path, how: str, backend: str, name: str = "run") -> dict[tuple[str, str], set[str | None]]:
    """Paths of the modules of the ops and kernels of the second step, by (name without its number, phase)."""
    (folder / "program.py").write_text(PROGRAM)
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "TORCHINDUCTOR_CACHE_DIR": str(folder / f"cache_{how}"),
        "PYTHONPATH": str(Path(__file__).resolve().parents[3]),
    }
    done = subprocess.run(
        [sys.executable, str(folder / "program.py"), str(folder / name), how, backend],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    run = RunReader(folder / name)
    paths = {row["module_id"]: row["path"] for row in run.read("modules").to_pylist()}
    found: dict[tuple[str, str], set[str | None]] = {}
    for event in run.read("events").to_pylist():
        if event["step"] == 1:
            kind = event["name"].split("cpp_")[-1].rstrip("0123456789_")
            phase = "backward" if event["phase"] == "backward" else "forward"
            found.setdefault((kind, phase), set()).add(paths.get(event["module_id"]))
    return found


BLOCKS = {"encoder.layers.0", "encoder.layers.1"}
LINEARS = {f"{block}.{name}" for block in BLOCKS for name in ("linear1", "linear2")} | {"head"}
ACTS = {f"{block}.act" for block in BLOCKS}
HOWS = ["whole", "breaks", "function", "parts", "inner"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("compiled_modules")


@pytest.mark.parametrize("backend", ["own", "aot_eager"])
@pytest.mark.parametrize("how", HOWS)
def test_ops_of_other_backends_have_their_nodes_modules(folder: Path, how: str, backend: str) -> None:
    found = record(folder, how, backend, f"{how}_{backend}")
    assert found["aten::addmm", "forward"] == LINEARS
    assert found["aten::sigmoid", "forward"] == ACTS
    assert found["aten::add", "forward"] == BLOCKS
    assert found["aten::tanh", "forward"] == {""}
    assert found["aten::mm", "backward"] == LINEARS
    assert found["aten::sigmoid_backward", "backward"] == ACTS
    assert found["aten::tanh_backward", "backward"] == {""}


@pytest.mark.skipif(shutil.which("g++") is None, reason="Inductor needs a C++ compiler")
@pytest.mark.parametrize("how", HOWS)
def test_kernels_of_inductor_have_the_modules_of_what_they_compute(folder: Path, how: str) -> None:
    fresh = record(folder, how, "inductor", f"{how}_fresh")
    assert fresh["aten::addmm", "forward"] == LINEARS
    assert fresh["fused_sigmoid", "forward"] == ACTS
    assert fresh["fused_add", "forward"] >= {"encoder.layers.0"}
    assert fresh["aten::mm", "backward"] == LINEARS
    assert fresh["fused_sigmoid_backward_sum", "backward"] == BLOCKS
    cached = record(folder, how, "inductor", f"{how}_cached")
    assert cached == fresh
