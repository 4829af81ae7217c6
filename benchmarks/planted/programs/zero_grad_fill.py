"""Gradients are filled with zeros instead of dropped."""

import torch
from torch import nn

KIND = "zero_grad"


def program(slow, steps, step):
    torch.manual_seed(0)
    model = nn.Sequential(*[nn.Linear(512, 512) for _ in range(8)])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, fused=True)
    batch = torch.randn(4, 512)
    for _ in range(steps):
        loss = model(batch).square().mean()
        optimizer.zero_grad(set_to_none=not slow)  # fault
        loss.backward()
        optimizer.step()
        step()
