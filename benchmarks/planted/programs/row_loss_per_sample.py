"""The loss is computed sample by sample and added up."""

import torch
from torch import nn
from torch.nn import functional as F

KIND = "row_loop"


def program(slow, steps, step):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 100))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, fused=True)
    batch, labels = torch.randn(96, 256), torch.randint(0, 100, (96,))
    for _ in range(steps):
        logits = model(batch)
        if slow:
            loss = 0.0
            for i in range(len(labels)):  # fault
                loss = loss + F.cross_entropy(logits[i : i + 1], labels[i : i + 1])  # fault
            loss = loss / len(labels)
        else:
            loss = F.cross_entropy(logits, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step()
