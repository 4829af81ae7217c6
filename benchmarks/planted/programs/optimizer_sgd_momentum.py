"""SGD with momentum updates its tensors one by one."""

import torch
from torch import nn

KIND = "single_tensor_optimizer"


def program(slow, steps, step):
    torch.manual_seed(0)
    model = nn.Sequential(*[nn.Linear(64, 64) for _ in range(64)])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9, foreach=False, fused=not slow)
    batch = torch.randn(32, 64)
    for _ in range(steps):
        loss = model(batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()  # fault
        step()
