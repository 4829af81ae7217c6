"""An autoencoder with gradient accumulation over two batches."""

import torch
from torch import nn


def program(steps, step):
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 32), nn.Linear(32, 512), nn.ReLU(), nn.Linear(512, 784)
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.001, fused=True)
    batches = torch.rand(2, 128, 784)
    for _ in range(steps):
        optimizer.zero_grad()
        for batch in batches:
            loss = nn.functional.mse_loss(model(batch), batch) / 2
            loss.backward()
        optimizer.step()
        step()
