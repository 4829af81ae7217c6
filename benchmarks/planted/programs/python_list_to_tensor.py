"""A nested list becomes a tensor in each step."""

import torch
from torch import nn

KIND = "host_bound"


def program(slow, steps, step):
    torch.manual_seed(0)
    rows = [[float(i + j) for j in range(256)] for i in range(256)]
    ready = torch.tensor(rows)
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0001, fused=True)
    for _ in range(steps):
        batch = ready
        if slow:
            batch = torch.tensor(rows)  # fault
        loss = model(batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step()
