"""Each block changes the memory layout there and back."""

import torch
from torch import nn

KIND = "contiguous_copies"


class Block(nn.Module):
    def __init__(self, slow):
        super().__init__()
        self.norm = nn.LayerNorm(64)
        self.slow = slow

    def forward(self, x):
        if self.slow:
            y = x.permute(0, 3, 1, 2).contiguous()  # fault
            y = y.permute(0, 2, 3, 1).contiguous()  # fault
            return self.norm(y)
        return self.norm(x)


def program(slow, steps, step):
    torch.manual_seed(0)
    model = nn.Sequential(*[Block(slow) for _ in range(3)])
    x = torch.randn(16, 32, 32, 64)
    for _ in range(steps):
        with torch.inference_mode():
            model(x)
        step()
