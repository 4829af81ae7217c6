"""Convolution blocks are recomputed although their activations are small."""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

KIND = "recompute"
HELD_OUT = True  # written before its predictions were looked at


def program(slow, steps, step):
    torch.manual_seed(0)
    blocks = nn.ModuleList(
        nn.Sequential(nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 16, 3, padding=1))
        for _ in range(3)
    )
    images = torch.randn(4, 16, 32, 32)
    for _ in range(steps):
        x = images
        for block in blocks:
            x = x + (checkpoint(block, x, use_reentrant=False) if slow else block(x))  # fault
        loss = x.square().mean()
        blocks.zero_grad()
        loss.backward()
        step()
