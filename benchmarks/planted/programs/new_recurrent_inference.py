"""A recurrent model answers with gradients on."""

import contextlib

import torch
from torch import nn

KIND = "grads_in_inference"
HELD_OUT = True  # written before its predictions were looked at


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(32, 48)
        self.head = nn.Linear(48, 4)

    def forward(self, xs):
        state = torch.zeros(xs.shape[1], 48)
        for x in xs:
            state = self.cell(x, state)
        return self.head(state)


def program(slow, steps, step):
    torch.manual_seed(0)
    model, xs = Reader(), torch.randn(40, 4, 32)
    for _ in range(steps):
        with contextlib.nullcontext() if slow else torch.no_grad():  # fault
            model(xs)  # fault
        step()
