"""Rows are normalised one by one."""

import torch
from torch import nn

KIND = "row_loop"


def normalise(x):
    out = torch.empty_like(x)
    for i in range(x.shape[0]):  # fault
        out[i] = x[i] / x[i].norm()  # fault
    return out


def program(slow, steps, step):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 256))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, fused=True)
    batch = torch.randn(200, 256)
    for _ in range(steps):
        x = normalise(batch) if slow else batch / batch.norm(dim=1, keepdim=True)
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step()
