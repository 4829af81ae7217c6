"""Images are flipped and shifted one at a time."""

import torch
from torch import nn

KIND = "row_loop"


def augment(images, flips, gains):
    done = []
    for i in range(images.shape[0]):  # fault
        image = images[i]  # fault
        if flips[i]:  # fault
            image = image.flip(-1)  # fault
        done.append(image * gains[i])  # fault
    return torch.stack(done)


def program(slow, steps, step):
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 10)
    )
    images = torch.randn(64, 3, 16, 16)
    flips, gains = torch.rand(64) > 0.5, torch.rand(64)
    for _ in range(steps):
        if slow:
            x = augment(images, flips, gains)
        else:
            x = torch.where(flips[:, None, None, None], images.flip(-1), images) * gains[:, None, None, None]
        loss = model(x).square().mean()
        model.zero_grad()
        loss.backward()
        step()
