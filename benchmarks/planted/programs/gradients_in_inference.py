"""Inference records a graph that no backward pass will use."""

import contextlib

import torch
from torch import nn

KIND = "grads_in_inference"


def program(slow, steps, step):
    torch.manual_seed(0)
    model = nn.Sequential(*[nn.Sequential(nn.Linear(32, 32), nn.Tanh()) for _ in range(60)])
    batch = torch.randn(8, 32)
    for _ in range(steps):
        with contextlib.nullcontext() if slow else torch.inference_mode():  # fault
            output = model(batch)  # fault
        assert output.shape == (8, 32)
        step()
