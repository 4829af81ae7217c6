"""Attention as two products and a softmax keeps the whole score matrix in memory."""

import torch
from torch import nn
from torch.nn import functional as F

KIND = "unfused_attention"


class Attention(nn.Module):
    def __init__(self, slow):
        super().__init__()
        self.project = nn.Linear(128, 3 * 128)
        self.slow = slow

    def forward(self, x):
        batch, length, _ = x.shape
        q, k, v = self.project(x).view(batch, length, 3, 4, 32).permute(2, 0, 3, 1, 4)
        if self.slow:
            scores = q @ k.transpose(-2, -1) * 32**-0.5
            y = scores.softmax(-1) @ v  # fault
        else:
            y = F.scaled_dot_product_attention(q, k, v)
        return y.transpose(1, 2).reshape(batch, length, 128)


def program(slow, steps, step):
    torch.manual_seed(0)
    model = Attention(slow)
    x = torch.randn(4, 512, 128)
    for _ in range(steps):
        with torch.inference_mode():
            model(x)
        step()
