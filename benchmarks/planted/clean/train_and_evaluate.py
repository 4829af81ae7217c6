"""Training with evaluation under no_grad and one number fetched per step."""

import torch
from torch import nn


def evaluate(model, batch, labels):
    with torch.no_grad():
        return (model(batch).argmax(-1) == labels).float().mean().item()


def program(steps, step):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(256, 1024), nn.GELU(), nn.Linear(1024, 10))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.001, fused=True)
    batch, labels = torch.randn(256, 256), torch.randint(0, 10, (256,))
    for _ in range(steps):
        loss = nn.functional.cross_entropy(model(batch), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        evaluate(model, batch, labels)
        step()
