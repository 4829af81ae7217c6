"""Each element of the result is fetched with .item()."""

import torch
from torch import nn

KIND = "row_loop"


def program(slow, steps, step):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 1))
    batch = torch.randn(512, 256)
    for _ in range(steps):
        with torch.inference_mode():
            scores = model(batch).squeeze(1)
            if slow:
                good = 0
                for score in scores:  # fault
                    if score.item() > 0:  # fault
                        good += 1
            else:
                good = (scores > 0).sum().item()
        step()
