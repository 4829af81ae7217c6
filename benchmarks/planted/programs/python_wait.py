"""The loop waits for a rate limit in each step."""

import time

import torch
from torch import nn

KIND = "host_bound"
WALL_CLOCK = True


def program(slow, steps, step):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 256))
    batch = torch.randn(128, 256)
    for _ in range(steps):
        with torch.inference_mode():
            model(batch)
        if slow:
            time.sleep(0.002)  # fault
        step()
