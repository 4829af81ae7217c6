"""Every layer is checkpointed, so the forward pass runs twice."""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

KIND = "recompute"


def program(slow, steps, step):
    torch.manual_seed(0)
    layers = nn.ModuleList(nn.Sequential(nn.Linear(512, 512), nn.GELU()) for _ in range(6))
    optimizer = torch.optim.SGD(layers.parameters(), lr=0.01, fused=True)
    batch = torch.randn(128, 512)
    for _ in range(steps):
        x = batch
        for layer in layers:
            if slow:
                x = checkpoint(layer, x, use_reentrant=False)  # fault
            else:
                x = layer(x)
        loss = x.square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step()
