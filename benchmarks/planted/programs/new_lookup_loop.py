"""Every token's vector is looked up and scaled by itself."""

import torch
from torch import nn

KIND = "row_loop"
HELD_OUT = True  # written before its predictions were looked at


def embed(table, tokens, weights):
    out = torch.empty(len(tokens), table.shape[1])
    for i in range(len(tokens)):
        out[i] = table[tokens[i]] * weights[i]  # fault
    return out


def program(slow, steps, step):
    torch.manual_seed(0)
    table, weights = torch.randn(1000, 128), torch.rand(160)
    tokens = torch.randint(0, 1000, (160,))
    model = nn.Sequential(nn.Linear(128, 512), nn.GELU(), nn.Linear(512, 128))
    for _ in range(steps):
        with torch.inference_mode():
            if slow:
                x = embed(table, tokens, weights)
            else:
                x = table[tokens] * weights[:, None]
            model(x)
        step()
