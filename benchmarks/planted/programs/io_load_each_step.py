"""A table of constants is read from disk in each step."""

import os
import tempfile

import numpy
import torch
from torch import nn

KIND = "io_in_step"


def program(slow, steps, step):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 512))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, fused=True)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "table.npy")
        numpy.save(path, numpy.ones((6000, 512), dtype=numpy.float32))
        table = torch.from_numpy(numpy.load(path))
        for _ in range(steps):
            if slow:
                table = torch.from_numpy(numpy.load(path))  # fault
            loss = model(table[:64]).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step()
