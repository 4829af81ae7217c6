"""Train a tiny, randomly initialised Llama or BERT of Hugging Face transformers. Nothing is downloaded.

python examples/huggingface_tiny.py --model llama --steps 10
"""

from __future__ import annotations

import argparse
import time

import torch
from transformers import BertConfig, BertForMaskedLM, LlamaConfig, LlamaForCausalLM, PreTrainedModel

VOCABULARY = 256


def build(name: str) -> PreTrainedModel:
    """A two-layer model of the wanted family."""
    size = {
        "vocab_size": VOCABULARY,
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
    }
    if name == "llama":
        return LlamaForCausalLM(LlamaConfig(**size, num_key_value_heads=2, max_position_embeddings=128))
    return BertForMaskedLM(BertConfig(**size, max_position_embeddings=128))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--model", choices=("llama", "bert"), default="llama")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--batch", type=int, default=8)
    options = parser.parse_args()
    torch.manual_seed(0)
    device = torch.accelerator.current_accelerator(check_available=True) or torch.device("cpu")
    model = build(options.model).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    start = time.perf_counter()
    for _ in range(options.steps):
        tokens = torch.randint(0, VOCABULARY, (options.batch, 64), device=device)
        loss = model(input_ids=tokens, labels=tokens).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    seconds = time.perf_counter() - start
    print(
        f"{options.model} on {device}: {1000 * seconds / options.steps:.1f} ms a step, last loss {loss.item():.3f}"
    )


if __name__ == "__main__":
    main()
