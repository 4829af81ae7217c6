"""Forty layers called in a loop, with an index: not a loop over rows."""

import torch
from torch import nn


def program(steps, step):
    torch.manual_seed(0)
    layers = nn.ModuleList(nn.Linear(256, 256) for _ in range(40))
    x = torch.randn(128, 256)
    for _ in range(steps):
        with torch.inference_mode():
            y = x
            for i in range(len(layers)):
                y = layers[i](y)
        step()
