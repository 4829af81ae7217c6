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
