"""Time by nn.Module of a real training run: forward, backward, and forward again where activations are recomputed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from explorer import neuron_profile, open_run

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.capture


class Block(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up = torch.nn.Linear(8, 32)
        self.down = torch.nn.Linear(32, 8)

    def forward(self, x: Any) -> Any:
        return torch.relu(self.down(torch.relu(self.up(x))))


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.plain = Block()
        self.saved = Block()

    def forward(self, x: Any) -> Any:
        return torch.utils.checkpoint.checkpoint(self.saved, self.plain(x), use_reentrant=False)


def test_passes_of_each_module(tmp_path: Path) -> None:
    model = Net()
    with neuron_profile(tmp_path / "run", telemetry=False) as prof:
        for _ in range(3):
            model(torch.ones(4, 8)).sum().backward()
            prof.step()
    rows = {row["path"]: row for row in open_run(str(tmp_path / "run")).modules().rows()}
    assert set(rows) == {"", "plain", "plain.up", "plain.down", "saved", "saved.up", "saved.down"}
    for path, row in rows.items():
        assert row["forward_ns"] > 0
        assert row["backward_ns"] > 0
        assert (row["recompute_ns"] > 0) == (not path.startswith("plain"))
        assert row["forward_ns"] + row["backward_ns"] + row["recompute_ns"] == row["total_ns"]
    for name in ("forward_ns", "backward_ns", "recompute_ns"):
        assert rows[""][name] >= rows["plain"][name] + rows["saved"][name]
        assert rows["saved"][name] >= rows["saved.up"][name] + rows["saved.down"][name]
