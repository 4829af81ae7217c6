"""Python time of library modules inside a user's line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from explorer import neuron_profile, open_run
from explorer.collectors.capture.module_python import module_python_ns


def times(*values: int) -> npt.NDArray[np.int64]:
    return np.array(values, dtype=np.int64)


NONE = (times(), times())


def test_time_in_a_library_module_is_its_python_but_for_ops() -> None:
    # One state from 0 to 100; a module's call runs from 20 to 80, an op inside it from 30 to 60.
    found = module_python_ns(
        times(0), times(100), (times(20, 80), times(1, 0)), (times(30, 35), times(60, 40))
    )
    assert found.tolist() == [30]


def test_a_module_with_lines_of_its_own_has_only_the_machinery_around_them() -> None:
    # `model(x)`, the lines of model.forward from 22 to 78, and `model(x)` again: the call is open from 20 to 80.
    found = module_python_ns(times(0, 22, 78), times(22, 78, 100), (times(20, 80), times(1, 0)), NONE)
    assert found.tolist() == [2, 0, 2]


def test_a_library_module_called_in_a_recorded_forward_counts_at_its_line() -> None:
    # The forward's line is a state from 10 to 90, inside the call open since 5; on it a layer runs from 30 to 50.
    calls = (times(5, 30, 50, 95), times(1, 2, 1, 0))
    found = module_python_ns(times(0, 10, 90), times(10, 90, 100), calls, NONE)
    assert found.tolist() == [5, 20, 5]


def test_states_without_modules_have_none() -> None:
    assert module_python_ns(times(0, 10), times(10, 20), NONE, NONE).tolist() == [0, 0]
    assert module_python_ns(times(), times(), (times(1), times(1)), NONE).tolist() == []


class Own(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.layer(x)
        return sum([y] * 3)  # type: ignore[return-value]


def test_a_recorded_run_knows_which_python_is_a_modules(tmp_path: Path) -> None:
    model, x = Own(), torch.randn(2, 4)
    with neuron_profile(tmp_path / "run") as profile:
        for _ in range(3):
            model(x)
            profile.step()
    rows = (
        open_run(tmp_path / "run")
        .sql("""SELECT trim(s.code) AS code, min(h.module_python_ns) AS least, max(h.module_python_ns - h.duration_ns) AS over
        FROM host_states h JOIN sites s USING (site_id) GROUP BY s.code""")
        .rows()
    )
    known = {row["code"]: row for row in rows}
    assert known["y = self.layer(x)"]["least"] > 0
    assert known["model(x)"]["least"] > 0
    assert known["return sum([y] * 3)  # type: ignore[return-value]"]["least"] == 0
    assert known["for _ in range(3):"]["least"] == 0
    assert all(row["over"] <= 0 for row in rows)
