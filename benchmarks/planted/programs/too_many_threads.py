"""Far more compute threads than cores."""

import torch
from torch import nn

KIND = "thread_oversubscription"
WALL_CLOCK = True


def program(slow, steps, step):
    torch.manual_seed(0)
    before = torch.get_num_threads()
    torch.set_num_threads(32 if slow else 1)  # fault
    model = nn.Sequential(*[nn.Sequential(nn.Linear(256, 256), nn.Tanh()) for _ in range(8)])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, fused=True)
    batch = torch.randn(256, 256)
    try:
        for _ in range(steps):
            loss = model(batch).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step()
    finally:
        torch.set_num_threads(before)
