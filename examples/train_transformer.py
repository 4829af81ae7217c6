"""Train a small transformer to classify lines of text, with common slow habits left in.

    python examples/train_transformer.py                 slow on purpose
    python examples/train_transformer.py --fixed         the same training with every habit repaired

Every slow place is marked `slow:` with what the repaired version does instead. Runs on whatever torch.accelerator finds.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

LENGTH = 32
CLASSES = 4
VOCABULARY = ["", *(f"word{number}" for number in range(1, 2048))]


class ScaledTanh(torch.autograd.Function):
    """tanh(x) * x with its own backward."""

    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, x: Tensor) -> Tensor:
        t = torch.tanh(x)
        ctx.save_for_backward(x, t)
        return t * x

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, gradient: Tensor) -> Tensor:
        x, t = ctx.saved_tensors
        return gradient * (t + x * (1 - t * t))


class Lines(Dataset):
    """Made-up lines of words, of different lengths; the class is the commonest quarter of the vocabulary."""

    def __init__(self, count: int, fixed: bool) -> None:
        generator = torch.Generator().manual_seed(7)
        numbers = torch.randint(1, len(VOCABULARY), (count, LENGTH), generator=generator)
        self.labels = (numbers * CLASSES // len(VOCABULARY)).mode(dim=1).values
        self.lengths = torch.randint(LENGTH // 2, LENGTH + 1, (count,), generator=generator)
        numbers[torch.arange(LENGTH) >= self.lengths[:, None]] = 0
        self.numbers = numbers
        self.texts = [" ".join(VOCABULARY[n] for n in row if n) for row in numbers.tolist()]
        self.fixed = fixed

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor, Tensor]:
        if self.fixed:
            return self.numbers[index], self.lengths[index], self.labels[index]
        # slow: every word is searched in a list, for every sample of every epoch. Repaired: once, before training.
        numbers = list(map(VOCABULARY.index, self.texts[index].split()))
        row = torch.zeros(LENGTH, dtype=torch.long)
        row[: len(numbers)] = torch.tensor(numbers)
        return row, self.lengths[index], self.labels[index]


class Classifier(nn.Module):
    """Embedding, two encoder layers, mean over the line, class scores."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.embedding = nn.Embedding(len(VOCABULARY), width)
        layer = nn.TransformerEncoderLayer(width, nhead=4, dim_feedforward=2 * width, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, num_layers=2, enable_nested_tensor=False)
        self.head = nn.Linear(width, CLASSES)

    def forward(self, words: Tensor, padding: Tensor) -> Tensor:
        hidden = self.encoder(self.embedding(words), src_key_padding_mask=padding)
        return self.head(ScaledTanh.apply(hidden.mean(dim=1)))


def padding_mask(lengths: Tensor, fixed: bool) -> Tensor:
    """True where a line has ended."""
    if fixed:
        return torch.arange(LENGTH, device=lengths.device) >= lengths[:, None]
    mask = torch.zeros(len(lengths), LENGTH, dtype=torch.bool, device=lengths.device)
    # slow: tiny ops, one after another for every row. Repaired: one comparison for the whole batch.
    for row in range(len(lengths)):
        mask[row, lengths[row] :] = True
    return mask


def train(
    model: Classifier, loader: DataLoader, device: torch.device, steps: int, fixed: bool, folder: Path
) -> float:
    # slow: foreach=False updates one parameter after another. Repaired: one fused pass over all of them.
    how = {"fused": True} if fixed else {"foreach": False}
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, **how)
    total = torch.zeros((), device=device) if fixed else 0.0
    for step, (words, lengths, labels) in enumerate(batches(loader, steps)):
        words, labels = words.to(device, non_blocking=True), labels.to(device, non_blocking=True)
        padding = padding_mask(lengths.to(device), fixed)
        loss = nn.functional.cross_entropy(model(words, padding), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if fixed:
            total += loss.detach()
        else:
            # slow: .item() waits for the device in every step. Repaired: summed on the device, read once at the end.
            total += loss.item()
            # slow: a checkpoint in every step. Repaired: one after training.
            torch.save(model.state_dict(), folder / "checkpoint.pt")
            # slow: a log file opened and closed in every step. Repaired: no log in the step.
            with open(folder / "log.txt", "a") as log:
                log.write(f"{step} {total / (step + 1):.4f}\n")
    torch.save(model.state_dict(), folder / "checkpoint.pt")
    return float(total) / steps


def batches(loader: DataLoader, steps: int) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """`steps` batches, starting over where the data ends."""
    left = steps
    while left:
        for batch in loader:
            yield batch
            left -= 1
            if not left:
                return


@torch.no_grad()
def evaluate(model: Classifier, loader: DataLoader, device: torch.device) -> float:
    """Share of right answers."""
    model.eval()
    right = seen = 0
    for words, lengths, labels in loader:
        guess = model(words.to(device), padding_mask(lengths.to(device), True)).argmax(dim=1).cpu()
        right += int((guess == labels).sum())
        seen += len(labels)
    model.train()
    return right / seen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--fixed", action="store_true", help="train with every slow habit repaired")
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)  # these tensors are too small to share among threads
    device = torch.accelerator.current_accelerator(check_available=True) or torch.device("cpu")
    model = Classifier().to(device)
    loader = DataLoader(Lines(512, options.fixed), batch_size=options.batch, shuffle=True, drop_last=True)
    test = DataLoader(Lines(128, options.fixed), batch_size=options.batch)
    with tempfile.TemporaryDirectory() as folder:
        train(
            model, loader, device, 1, options.fixed, Path(folder)
        )  # the first step prepares kernels and buffers
        start = time.perf_counter()
        loss = train(model, loader, device, options.steps, options.fixed, Path(folder))
        seconds = time.perf_counter() - start
    accuracy = evaluate(model, test, device)
    print(
        f"{device}: {options.steps} steps in {seconds:.2f} s, {1000 * seconds / options.steps:.1f} ms a step, "
        f"loss {loss:.3f}, right {accuracy:.0%}"
    )


if __name__ == "__main__":
    main()
