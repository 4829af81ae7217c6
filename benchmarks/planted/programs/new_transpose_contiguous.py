"""Activations are turned around in memory before and after a layer that does not need it."""

import torch
from torch import nn

KIND = "contiguous_copies"
HELD_OUT = True  # written before its predictions were looked at


class Mixer(nn.Module):
    def __init__(self, slow):
        super().__init__()
        self.norm = nn.LayerNorm(256)
        self.mix = nn.Linear(256, 256)
        self.slow = slow

    def forward(self, x):
        if self.slow:
            x = x.transpose(0, 1).contiguous()  # fault
            return self.mix(self.norm(x)).transpose(0, 1).contiguous()  # fault
        return self.mix(self.norm(x))


def program(slow, steps, step):
    torch.manual_seed(0)
    model = nn.Sequential(Mixer(slow), Mixer(slow))
    x = torch.randn(64, 128, 256)
    for _ in range(steps):
        with torch.inference_mode():
            model(x)
        step()
