"""A multilayer perceptron trained with a fused optimizer."""

import torch
from torch import nn


def program(steps, step):
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10)
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.001, fused=True)
    batch, labels = torch.randn(256, 512), torch.randint(0, 10, (256,))
    for _ in range(steps):
        loss = nn.functional.cross_entropy(model(batch), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step()
