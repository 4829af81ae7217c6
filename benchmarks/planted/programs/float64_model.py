"""The whole model runs in double precision because its input came from numpy."""

import numpy
import torch
from torch import nn

KIND = "float64"


def program(slow, steps, step):
    torch.manual_seed(0)
    kind = torch.float64 if slow else torch.float32
    model = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 512)).to(kind)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, fused=True)
    batch = torch.from_numpy(numpy.ones((256, 512))).to(kind)
    for _ in range(steps):
        loss = model(batch).square().mean()  # fault
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step()
