"""Sixty-four small models of one shape are called one after the other."""

import torch
from torch import nn

KIND = "tiny_ops"


def program(slow, steps, step):
    torch.manual_seed(0)
    weights = [torch.randn(16, 16) for _ in range(64)]
    stacked = torch.stack(weights)
    head = nn.Linear(64 * 16, 256)
    batch = torch.randn(32, 16)
    for _ in range(steps):
        with torch.inference_mode():
            if slow:
                outputs = []
                for weight in weights:
                    outputs.append(torch.tanh(batch @ weight))  # fault
                x = torch.cat(outputs, dim=1)
            else:
                x = torch.tanh(batch @ stacked).transpose(0, 1).reshape(32, -1)
            head(x).sum()
        step()
