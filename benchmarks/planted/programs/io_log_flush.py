"""A log file is opened, written line by line, flushed and closed in each step."""

import os
import tempfile

import torch
from torch import nn

KIND = "io_in_step"


def program(slow, steps, step):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 256))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, fused=True)
    batch = torch.randn(64, 256)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "log.txt")
        for number in range(steps):
            loss = model(batch).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if slow:
                for _ in range(100):
                    with open(path, "a") as log:  # fault
                        log.write(f"{number}\n")  # fault
            step()
