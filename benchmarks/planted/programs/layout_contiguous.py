"""Tensors are transposed and copied to contiguous memory before each op."""

import torch
from torch import nn

KIND = "contiguous_copies"


def program(slow, steps, step):
    torch.manual_seed(0)
    x = torch.randn(64, 256, 256)
    weight = nn.Parameter(torch.randn(256))
    for _ in range(steps):
        with torch.inference_mode():
            y = x
            for _ in range(2):
                if slow:
                    y = y.transpose(1, 2).contiguous()  # fault
                    y = (y * weight[:, None]).transpose(1, 2).contiguous()  # fault
                else:
                    y = y * weight
        step()
