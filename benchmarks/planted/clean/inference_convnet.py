"""Inference of a convolutional net in inference mode."""

import torch
from torch import nn


@torch.inference_mode()
def predict(model, images):
    return model(images).argmax(-1)


def program(steps, step):
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3), nn.ReLU(), nn.Conv2d(32, 32, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10)
    ).eval()  # fmt: skip
    images = torch.randn(32, 3, 48, 48)
    for _ in range(steps):
        predict(model, images)
        step()
