"""The collate function splits and looks up words for every batch."""

import torch
from torch import nn
from torch.utils.data import DataLoader

KIND = "data_loader_stall"
WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"]
VOCABULARY = {word: number for number, word in enumerate(WORDS)}
TEXTS = [" ".join(WORDS[(i * j) % 8] for j in range(128)) for i in range(512)]


def collate(texts):
    rows = [[VOCABULARY.get(word.strip().lower(), 0) for word in text.split()] for text in texts]  # fault
    return torch.tensor(rows)


def program(slow, steps, step):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(8, 64), nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, fused=True)
    if slow:
        loader = DataLoader(TEXTS, batch_size=32, collate_fn=collate)
    else:
        ready = collate(TEXTS)
        loader = DataLoader(ready.split(32), batch_size=None)
    for _, tokens in zip(range(steps), loader):
        loss = model(tokens).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step()
