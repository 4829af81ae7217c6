"""A print inside a compiled function breaks its graph in each block."""

import torch
from torch import nn

KIND = "graph_breaks"


class Block(nn.Module):
    def __init__(self, slow):
        super().__init__()
        self.layer = nn.Linear(64, 64)
        self.slow = slow

    def forward(self, x):
        y = self.layer(x).relu()
        if self.slow:
            print("", end="")  # fault
        return y + x


def program(slow, steps, step):
    torch.manual_seed(0)
    torch._dynamo.reset()
    model = nn.Sequential(*[Block(slow) for _ in range(6)])
    compiled = torch.compile(model, backend="eager")
    x = torch.randn(64, 64)
    with torch.inference_mode():
        compiled(x)
        for _ in range(steps):
            compiled(x)
            step()
    torch._dynamo.reset()
