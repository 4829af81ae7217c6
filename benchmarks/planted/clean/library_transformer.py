"""nn.TransformerEncoder in evaluation."""

import torch
from torch import nn


def program(steps, step):
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(128, 4, 256, batch_first=True, dropout=0.0)
    model = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False).eval()
    x = torch.randn(16, 64, 128)
    for _ in range(steps):
        with torch.inference_mode():
            model(x)
        step()
