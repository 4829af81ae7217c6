"""The probability of each label is picked in a list comprehension."""

import torch
from torch import nn

KIND = "row_loop"


def program(slow, steps, step):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 64))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, fused=True)
    batch, labels = torch.randn(128, 256), torch.randint(0, 64, (128,))
    for _ in range(steps):
        logp = model(batch).log_softmax(-1)
        if slow:
            loss = -torch.stack([logp[i, labels[i]] for i in range(128)]).mean()  # fault
        else:
            loss = -logp.gather(1, labels[:, None]).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step()
