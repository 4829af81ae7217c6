"""Activations go to half precision and back around every layer."""

import torch
from torch import nn

KIND = "dtype_churn"


def program(slow, steps, step):
    torch.manual_seed(0)
    layers = nn.ModuleList(nn.Linear(128, 128) for _ in range(4))
    x = torch.randn(2048, 128)
    for _ in range(steps):
        with torch.inference_mode():
            y = x
            for layer in layers:
                y = layer(y).relu()
                if slow:
                    y = y.to(torch.float16).to(torch.float32)  # fault
        step()
