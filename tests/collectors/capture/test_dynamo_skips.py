"""torch.compile does not notice that it is recorded: same graphs, same breaks, no warning that names us."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from explorer.store.reader import RunReader

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.capture, pytest.mark.slow]

PROGRAM = """\
import torch
from torch import nn

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(16, 16)

    def forward(self, x):
        y = self.linear(x)  # product
        torch._dynamo.graph_break()
        return torch.relu(y)  # activation

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block() for _ in range(4)])

    def forward(self, x):
        for block in self.blocks:
            try:
                x = block(x)
                torch._dynamo.graph_break()
            finally:
                x = x + 1
        return x

compiled = torch.compile(Net(), backend="aot_eager")
optimizer = torch.optim.SGD(compiled.parameters(), lr=0.1)
for number in range(6):
    compiled(torch.randn(4 + number, 16)).sum().backward()
    optimizer.step()
from torch._dynamo.utils import counters
print(sorted(counters["frames"].items()), sorted(counters["graph_break"].items()))
"""

COLLECTIVE = """\
import os, socket, torch
import torch.distributed as dist
with socket.socket() as probe:
    probe.bind(("127.0.0.1", 0))
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(probe.getsockname()[1]))
dist.init_process_group("gloo", rank=0, world_size=1)

@torch.compile(backend="aot_eager", fullgraph=True)
def reduced(x):
    y = torch.sin(x)
    dist.all_reduce(y)  # reduced
    return y + 1

for _ in range(3):
    reduced(torch.ones(4))
dist.destroy_process_group()
print("done")
"""


def run(folder: Path, text: str, *, recorded: bool) -> subprocess.CompletedProcess[str]:
    (folder / "program.py").write_text(text)
    command = [sys.executable, str(folder / "program.py")]
    if recorded:
        command = [
            *(sys.executable, "-m", "explorer.cli.main", "record", "-o", str(folder / "run"), "--"),
            *command,
        ]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        cwd=Path(__file__).resolve().parents[3],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


@pytest.fixture(scope="module")
def both(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[subprocess.CompletedProcess[str], subprocess.CompletedProcess[str], RunReader]:
    folder = tmp_path_factory.mktemp("dynamo")
    plain = run(folder, PROGRAM, recorded=False)
    recorded = run(folder, PROGRAM, recorded=True)
    return plain, recorded, RunReader(folder / "run")


def marked(mark: str) -> int:
    return next(at for at, text in enumerate(PROGRAM.splitlines(), 1) if text.endswith("# " + mark))


def test_the_same_is_compiled_and_nothing_is_said(both: tuple) -> None:
    plain, recorded, _ = both
    assert plain.returncode == recorded.returncode == 0
    assert "'total'" in plain.stdout
    assert recorded.stdout == plain.stdout
    assert recorded.stderr.splitlines()[:-1] == plain.stderr.splitlines()


def test_lines_and_modules_are_right_from_the_first_step_to_the_last(both: tuple) -> None:
    run = both[2]
    sites = {row["site_id"]: row["line"] for row in run.read("sites").to_pylist()}
    modules = {row["module_id"]: row["path"].split(".")[-1] for row in run.read("modules").to_pylist()}
    found: dict[str, Counter] = {"aten::addmm": Counter(), "aten::relu": Counter()}
    for event in run.read("events").to_pylist():
        inside = event["attribution"] == "compiled"
        if event["name"] in found and inside and event["phase"] == "forward":
            found[event["name"]][event["step"], sites[event["site_id"]]] += 1
    last = run.read("steps").to_pylist()[-2]["step"]
    for name, line in (("aten::addmm", marked("product")), ("aten::relu", marked("activation"))):
        assert {at for _, at in found[name]} == {line}
        assert found[name][last, line] == 4
    paths = {modules.get(e["module_id"]) for e in run.read("events").to_pylist() if e["name"] == "aten::relu"}
    assert paths >= {"0", "1", "2", "3"}


@pytest.mark.skipif(not torch.distributed.is_gloo_available(), reason="this torch has no gloo")
def test_collectives_inside_a_compiled_function_still_compile(tmp_path: Path) -> None:
    done = run(tmp_path, COLLECTIVE, recorded=True)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    assert "explorer/" not in done.stderr
    assert "aten::sin" in RunReader(tmp_path / "run").read("events").column("name").to_pylist()
