"""Augmentation runs in numpy on the training thread."""

import numpy
import torch
from torch import nn

KIND = "host_bound"


def augment(images, random):
    noise = random.normal(size=images.shape)  # fault
    return (images + 0.1 * noise).astype(numpy.float32)


def program(slow, steps, step):
    torch.manual_seed(0)
    random = numpy.random.default_rng(0)
    images = random.normal(size=(64, 3, 32, 32)).astype(numpy.float32)
    ready = torch.from_numpy(augment(images, random))
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 10)
    )
    for _ in range(steps):
        batch = torch.from_numpy(augment(images, random)) if slow else ready
        loss = model(batch).square().mean()
        model.zero_grad()
        loss.backward()
        step()
