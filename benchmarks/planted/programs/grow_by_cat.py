"""A result grows by concatenation, copying everything again in each pass."""

import torch
from torch import nn

KIND = "cat_in_loop"


def program(slow, steps, step):
    torch.manual_seed(0)
    layer = nn.Linear(256, 256)
    chunks = list(torch.randn(64, 64, 256).unbind())
    for _ in range(steps):
        with torch.inference_mode():
            if slow:
                out = torch.empty(0, 256)
                for chunk in chunks:
                    out = torch.cat([out, chunk])  # fault
            else:
                out = torch.cat(chunks)
            layer(out)
        step()
