"""The training loop turns words into numbers in each step."""

import torch
from torch import nn

KIND = "host_bound"
WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"]
VOCABULARY = {word: number for number, word in enumerate(WORDS)}
TEXTS = [" ".join(WORDS[(i * j) % 8] for j in range(128)) for i in range(32)]


def encode(texts):
    return [[VOCABULARY[word.lower()] for word in text.split()] for text in texts]  # fault


def program(slow, steps, step):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(8, 64), nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, fused=True)
    ready = torch.tensor(encode(TEXTS))
    for _ in range(steps):
        tokens = torch.tensor(encode(TEXTS)) if slow else ready
        loss = model(tokens).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step()
