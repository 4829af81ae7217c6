"""GELU written as eight separate passes over memory."""

import math

import torch
from torch import nn
from torch.nn import functional as F

KIND = "pointwise_chain"


def gelu(x):
    return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))  # fault


def program(slow, steps, step):
    torch.manual_seed(0)
    layer = nn.Linear(256, 1024)
    x = torch.randn(1024, 256)
    for _ in range(steps):
        with torch.inference_mode():
            y = gelu(layer(x)) if slow else F.gelu(layer(x), approximate="tanh")
            y.sum()
        step()
