"""A running second moment fades below what the processor handles fast."""

import torch
from torch import nn

KIND = "denormals"


def program(slow, steps, step):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 64))
    moment = torch.full((512, 256), 1e-39 if slow else 1e-9)
    batch = torch.randn(64, 256)
    for _ in range(steps):
        loss = model(batch).square().mean()
        model.zero_grad()
        loss.backward()
        with torch.no_grad():
            moment.mul_(0.999)
            scale = moment.sqrt()  # fault
            model[0].weight.sub_(model[0].weight.grad / (scale + 1e3))
        step()
