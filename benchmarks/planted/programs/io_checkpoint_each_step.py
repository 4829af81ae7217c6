"""A checkpoint is written after every step."""

import os
import tempfile

import torch
from torch import nn

KIND = "io_in_step"


def program(slow, steps, step):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 512))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, fused=True)
    batch = torch.randn(64, 512)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.pt")
        for _ in range(steps):
            loss = model(batch).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if slow:
                torch.save(model.state_dict(), path)  # fault
            step()
