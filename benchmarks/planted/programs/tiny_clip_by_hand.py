"""Gradients are clipped parameter by parameter."""

import torch
from torch import nn

KIND = "tiny_ops"


def clip(parameters, limit):
    total = torch.zeros(())
    for p in parameters:
        total += p.grad.norm() ** 2  # fault
    scale = (limit / (total.sqrt() + 1e-6)).clamp(max=1.0)
    for p in parameters:
        p.grad.mul_(scale)  # fault


def program(slow, steps, step):
    torch.manual_seed(0)
    model = nn.Sequential(*[nn.Linear(32, 32) for _ in range(60)])
    parameters = list(model.parameters())
    optimizer = torch.optim.SGD(parameters, lr=0.01, fused=True)
    batch = torch.randn(16, 32)
    for _ in range(steps):
        loss = model(batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        with torch.no_grad():
            if slow:
                clip(parameters, 1.0)
            else:
                nn.utils.clip_grad_norm_(parameters, 1.0, foreach=True)
        optimizer.step()
        step()
