"""AdamW updates two hundred small tensors one by one."""

import torch
from torch import nn

KIND = "single_tensor_optimizer"


def program(slow, steps, step):
    torch.manual_seed(0)
    model = nn.Sequential(*[nn.Linear(48, 48) for _ in range(80)])
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.001, foreach=False, fused=not slow)
    batch = torch.randn(32, 48)
    for _ in range(steps):
        loss = model(batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()  # fault
        step()
