"""A numpy constant promotes one large product to double precision."""

import numpy
import torch
from torch import nn

KIND = "float64"


def program(slow, steps, step):
    torch.manual_seed(0)
    model = nn.Linear(512, 512)
    basis = torch.from_numpy(numpy.eye(512) * 0.5)
    if not slow:
        basis = basis.float()
    batch = torch.randn(512, 512)
    for _ in range(steps):
        with torch.inference_mode():
            x = model(batch)
            y = x.to(basis.dtype) @ basis @ basis  # fault
            y.sum()
        step()
