"""Adam as separate ops reads and writes large states several times."""

import torch
from torch import nn

KIND = "single_tensor_optimizer"


def program(slow, steps, step):
    torch.manual_seed(0)
    model = nn.Sequential(*[nn.Linear(256, 256) for _ in range(20)])
    optimizer = torch.optim.Adam(model.parameters(), lr=0.001, foreach=False, fused=not slow)
    batch = torch.randn(16, 256)
    for _ in range(steps):
        loss = model(batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()  # fault
        step()
