"""Anomaly detection was left on."""

import contextlib

import torch
from torch import nn

KIND = "debug_mode"


def program(slow, steps, step):
    torch.manual_seed(0)
    model = nn.Sequential(*[nn.Sequential(nn.Linear(64, 64), nn.Tanh()) for _ in range(30)])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, fused=True)
    batch = torch.randn(64, 64)
    with torch.autograd.set_detect_anomaly(True) if slow else contextlib.nullcontext():  # fault
        for _ in range(steps):
            loss = model(batch).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step()
