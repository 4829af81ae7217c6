"""Layer norm written out as separate ops."""

import torch
from torch import nn
from torch.nn import functional as F

KIND = "pointwise_chain"


def layer_norm(x, weight, bias):
    centred = x - x.mean(-1, keepdim=True)  # fault
    scaled = centred * (centred * centred).mean(-1, keepdim=True).add(1e-5).rsqrt()  # fault
    return scaled * weight + bias  # fault


def program(slow, steps, step):
    torch.manual_seed(0)
    layer = nn.Linear(256, 1024)
    weight, bias = torch.ones(1024), torch.zeros(1024)
    x = torch.randn(1024, 256)
    for _ in range(steps):
        with torch.inference_mode():
            y = layer(x)
            y = layer_norm(y, weight, bias) if slow else F.layer_norm(y, (1024,), weight, bias)
            y.sum()
        step()
