"""Accuracy per class is counted in Python over lists."""

import torch
from torch import nn

KIND = "host_bound"


def confusion(predicted, labels, classes):
    table = [[0] * classes for _ in range(classes)]
    for p, t in zip(predicted, labels):  # fault
        table[t][p] += 1  # fault
    return table


def program(slow, steps, step):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    batch, labels = torch.randn(8192, 64), torch.randint(0, 10, (8192,))
    for _ in range(steps):
        with torch.inference_mode():
            predicted = model(batch).argmax(-1)
            if slow:
                table = confusion(predicted.tolist(), labels.tolist(), 10)
            else:
                table = torch.bincount(labels * 10 + predicted, minlength=100).reshape(10, 10)
        step()
    assert len(table) == 10
