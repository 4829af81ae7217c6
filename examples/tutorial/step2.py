"""Train a small transformer that sends support tickets to the right team.

python train.py
"""

from __future__ import annotations

import argparse
import random
import re
import tempfile
import time
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

WORDS = ["<pad>", *(f"word{number}" for number in range(8000))]
PLACES = {word: place for place, word in enumerate(WORDS)}
TEAMS, LENGTH, WIDTH, HEADS = 4, 96, 32, 4


class Tickets(Dataset):
    """Made-up tickets of 48 to 96 words; the team is the quarter of the vocabulary that most words come from."""

    def __init__(self, count: int) -> None:
        chance = random.Random(7)
        self.teams = [chance.randrange(TEAMS) for _ in range(count)]
        self.rows = [self.tokens(self.text(chance, team)) for team in self.teams]

    def text(self, chance: random.Random, team: int) -> str:
        quarter = range(1 + team * 2000, 2001 + team * 2000)
        places = [chance.choice(quarter if chance.random() < 0.5 else range(1, 8001)) for _ in range(LENGTH)]
        return ", ".join(WORDS[place].title() for place in places[: chance.randint(48, LENGTH)])

    def tokens(self, text: str) -> tuple[Tensor, int]:
        words = re.findall(r"\w+", text.lower())
        places = list(map(PLACES.__getitem__, words))
        row = torch.zeros(LENGTH, dtype=torch.long)
        row[: len(places)] = torch.tensor(places)
        return row, len(places)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> tuple[Tensor, int, int]:
        row, length = self.rows[index]
        return row, length, self.teams[index]


class Block(nn.Module):
    """Attention and a feed-forward layer, each with its residual."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.mix, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.wide, self.narrow = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)

    def attend(self, x: Tensor, mask: Tensor) -> Tensor:
        batch, length, _ = x.shape
        mixed = self.mix(x).view(batch, length, 3, HEADS, WIDTH // HEADS)
        query, key, value = mixed.permute(2, 0, 3, 1, 4)
        found = nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=mask[:, None, None])
        return self.out(found.transpose(1, 2).reshape(batch, length, WIDTH))

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        x = x + self.attend(self.norm1(x), mask)
        return x + self.narrow(self.wide(self.norm2(x)).relu())


class Router(nn.Module):
    """Embedding, one block, the mean over the words, a score for each team."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(len(WORDS), WIDTH)
        self.place = nn.Parameter(torch.zeros(LENGTH, WIDTH))
        self.block = Block()
        self.head = nn.Linear(WIDTH, TEAMS)

    def forward(self, words: Tensor, lengths: Tensor) -> Tensor:
        hidden = self.block(self.embedding(words) + self.place, words != 0)
        means = []
        for row in range(len(hidden)):
            means.append(hidden[row, : lengths[row]].mean(dim=0))
        return self.head(torch.stack(means))


def save(folder: Path, model: Router, losses: list[float]) -> None:
    torch.save({"model": model.state_dict(), "losses": losses}, folder / "last.pt")


def train(model: Router, loader: DataLoader, steps: int, folder: Path) -> list[float]:
    """Train for `steps` steps; the loss of each."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    losses: list[float] = []
    while len(losses) < steps:
        for words, lengths, teams in loader:
            loss = nn.functional.cross_entropy(model(words, lengths), teams)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            save(folder, model, losses)
            if len(losses) == steps:
                break
    return losses


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=24)
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)  # these tensors are too small to share among threads
    model, loader = Router(), DataLoader(Tickets(512), batch_size=32, shuffle=True, drop_last=True)
    with tempfile.TemporaryDirectory() as folder:
        train(model, loader, 2, Path(folder))  # the first steps prepare kernels and buffers
        start = time.perf_counter()
        losses = train(model, loader, options.steps, Path(folder))
        seconds = time.perf_counter() - start
    print(
        f"{options.steps} steps, {1000 * seconds / options.steps:.1f} ms each, last loss {sum(losses[-5:]) / 5:.3f}"
    )


if __name__ == "__main__":
    main()
