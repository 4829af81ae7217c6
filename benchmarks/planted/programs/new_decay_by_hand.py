"""Weight decay is added to the gradients parameter by parameter."""

import torch
from torch import nn

KIND = "tiny_ops"
HELD_OUT = True  # written before its predictions were looked at


def program(slow, steps, step):
    torch.manual_seed(0)
    model = nn.Sequential(*[nn.Sequential(nn.Linear(24, 24), nn.LayerNorm(24)) for _ in range(40)])
    parameters = list(model.parameters())
    optimizer = torch.optim.SGD(parameters, lr=0.01, fused=True)
    batch = torch.randn(32, 24)
    for _ in range(steps):
        loss = model(batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        with torch.no_grad():
            if slow:
                for p in parameters:
                    p.grad.add_(p, alpha=0.01)  # fault
                    p.grad.clamp_(-1.0, 1.0)  # fault
            else:
                grads = [p.grad for p in parameters]
                torch._foreach_add_(grads, parameters, alpha=0.01)
                torch._foreach_clamp_min_(grads, -1.0)
                torch._foreach_clamp_max_(grads, 1.0)
        optimizer.step()
        step()
