"""A recommender with embedding bags."""

import torch
from torch import nn


def program(steps, step):
    torch.manual_seed(0)
    users, items = nn.EmbeddingBag(5000, 64), nn.EmbeddingBag(5000, 64)
    top = nn.Sequential(nn.Linear(128, 512), nn.ReLU(), nn.Linear(512, 1))
    parameters = [*users.parameters(), *items.parameters(), *top.parameters()]
    optimizer = torch.optim.SGD(parameters, lr=0.1, fused=True)
    left, right = torch.randint(0, 5000, (512, 8)), torch.randint(0, 5000, (512, 8))
    for _ in range(steps):
        score = top(torch.cat([users(left), items(right)], dim=1))
        loss = score.square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step()
