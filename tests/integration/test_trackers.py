"""Key figures and findings in experiment trackers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from explorer.analysis.run import Run, open_run
from explorer.report.loggers.key_values import findings_text, key_values
from explorer.report.loggers.mlflow import log_to_mlflow
from explorer.report.loggers.tensorboard import log_to_tensorboard
from explorer.report.loggers.wandb import log_to_wandb
from tests.agent.conftest import write_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return open_run(write_run(tmp_path_factory.mktemp("trackers") / "run"))


def test_values_are_those_of_the_run(run: Run) -> None:
    values = key_values(run)
    assert values["neuron_explorer/step_ms"] == 1.0
    assert values["neuron_explorer/compute_share"] == 0.5
    best = run.bottlenecks()[0]
    assert values[f"neuron_explorer/saving_ms/{best.rule}"] >= best.saving.expected / 1e6
    assert "`train.py:9`" in findings_text(run)


def test_tensorboard_reads_back_what_was_written(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="tensorboard is not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(tmp_path)) as writer:
        log_to_tensorboard(run, writer, step=7)
    events = EventAccumulator(str(tmp_path)).Reload()
    scalar = events.Scalars("neuron_explorer/step_ms")[0]
    assert (scalar.step, scalar.value) == (7, 1.0)
    text = events.Tensors("neuron_explorer/findings/text_summary")[0].tensor_proto.string_val[0].decode()
    assert "train.py:9" in text


class Recorder:
    """Notes every call, as a tracker's client would be called."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any, Any]] = []
        self.summary: dict[str, str] = {}

    def log(self, values: dict[str, float], step: int | None) -> None:
        self.calls.append(("log", values, step))

    def log_metrics(self, values: dict[str, float], step: int) -> None:
        self.calls.append(("log_metrics", values, step))

    def log_text(self, text: str, name: str) -> None:
        self.calls.append(("log_text", text, name))


def test_wandb_and_mlflow_forms(run: Run) -> None:
    wandb, mlflow = Recorder(), Recorder()
    log_to_wandb(run, wandb, step=3)
    assert wandb.calls == [("log", key_values(run), 3)]
    assert wandb.summary == {"neuron_explorer/findings": findings_text(run)}
    log_to_mlflow(run, mlflow, step=3)
    assert mlflow.calls[0][1]["neuron_explorer.step_ms"] == 1.0
    assert mlflow.calls[1] == ("log_text", findings_text(run), "findings.md")
