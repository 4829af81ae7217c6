"""A moving average of the weights is kept parameter by parameter."""

import torch
from torch import nn

KIND = "tiny_ops"


def program(slow, steps, step):
    torch.manual_seed(0)
    model = nn.Sequential(*[nn.Linear(32, 32) for _ in range(60)])
    parameters = list(model.parameters())
    averages = [p.detach().clone() for p in parameters]
    optimizer = torch.optim.SGD(parameters, lr=0.01, fused=True)
    batch = torch.randn(16, 32)
    for _ in range(steps):
        loss = model(batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            if slow:
                for average, p in zip(averages, parameters):
                    average.mul_(0.99).add_(p, alpha=0.01)  # fault
            else:
                torch._foreach_lerp_(averages, parameters, 0.01)
        step()
