"""The compiled function sees a new shape in each step and is compiled again."""

import torch
from torch import nn

KIND = "recompiles"


def program(slow, steps, step):
    torch.manual_seed(0)
    torch._dynamo.reset()
    layer = nn.Linear(64, 64)
    compiled = torch.compile(lambda x: layer(x).relu().sum(), backend="eager", dynamic=False)
    compiled(torch.randn(64, 64))
    with torch._dynamo.config.patch(recompile_limit=64):
        for number in range(steps):
            with torch.inference_mode():
                compiled(torch.randn(8 + number if slow else 8, 64))  # fault
            step()
    torch._dynamo.reset()
