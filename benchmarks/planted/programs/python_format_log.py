"""A record with thousands of formatted numbers is built in each step."""

import json

import torch
from torch import nn

KIND = "host_bound"


def program(slow, steps, step):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 128))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, fused=True)
    batch = torch.randn(64, 128)
    for _ in range(steps):
        out = model(batch)
        loss = out.square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if slow:
            record = json.dumps({"outputs": out.tolist()})  # fault
            assert record
        step()
