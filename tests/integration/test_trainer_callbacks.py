"""The Hugging Face Trainer callback on a tiny random model, really trained."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytest.importorskip("accelerate", reason="transformers' Trainer needs accelerate")

from explorer.analysis.run import open_run  # noqa: E402
from explorer.collectors.trainer_callbacks import huggingface_callback  # noqa: E402


class Tokens(torch.utils.data.Dataset):
    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        tokens = torch.arange(16) + index
        return {"input_ids": tokens, "labels": tokens}


@pytest.mark.capture
def test_some_steps_of_a_trainer_are_recorded(tmp_path: Path) -> None:
    config = transformers.LlamaConfig(
        vocab_size=128, hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2
    )
    callback = huggingface_callback(str(tmp_path / "run"), first_step=2, steps=4)
    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path / "out"),
        max_steps=9,
        per_device_train_batch_size=4,
        report_to=[],
        use_cpu=True,
        save_strategy="no",
        logging_strategy="no",
    )
    trainer = transformers.Trainer(
        model=transformers.LlamaForCausalLM(config),
        args=arguments,
        train_dataset=Tokens(),
        callbacks=[callback],
    )
    trainer.train()
    run = open_run(callback.directory)
    complete = [row for row in run.steps() if row["complete"]]
    assert len(complete) in (3, 4)
    names = {row["name"] for row in run.ops()}
    assert {"aten::embedding", "aten::mm"} & names
    assert run.engine.sql("SELECT count(*) AS n FROM events WHERE phase = 'backward'").rows()[0]["n"] > 0


@pytest.mark.capture
def test_some_batches_of_a_lightning_trainer_are_recorded(tmp_path: Path) -> None:
    lightning = pytest.importorskip("lightning.pytorch", reason="lightning is not installed")
    from explorer.collectors.trainer_callbacks import lightning_callback

    class Model(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(16, 16)

        def training_step(self, batch: torch.Tensor, index: int) -> torch.Tensor:
            return self.layer(batch).square().mean()

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.SGD(self.parameters(), lr=0.01)

    callback = lightning_callback(str(tmp_path / "run"), first_step=2, steps=4)
    trainer = lightning.Trainer(
        max_steps=9, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, default_root_dir=str(tmp_path), callbacks=[callback],
    )  # fmt: skip
    trainer.fit(Model(), torch.utils.data.DataLoader(torch.randn(64, 16), batch_size=4))
    run = open_run(callback.directory)
    assert len([row for row in run.steps() if row["complete"]]) in (3, 4)
    assert any(line["code"] and "self.layer(batch)" in line["code"] for line in run.lines())
