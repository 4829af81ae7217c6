"""Train a small residual convolutional network on made-up images. Runs on whatever torch.accelerator finds.

python examples/train_convnet.py --steps 20
"""

from __future__ import annotations

import argparse
import time

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset


class Block(nn.Module):
    """Two 3x3 convolutions with batch norm and a shortcut."""

    def __init__(self, channels: int, out: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels, out, 3, stride, padding=1, bias=False),
            nn.BatchNorm2d(out),
            nn.ReLU(inplace=True),
            nn.Conv2d(out, out, 3, padding=1, bias=False),
            nn.BatchNorm2d(out),
        )
        self.shortcut = nn.Conv2d(channels, out, 1, stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.body(x) + self.shortcut(x))


class ConvNet(nn.Module):
    """Three residual blocks and a linear layer."""

    def __init__(self, classes: int = 10) -> None:
        super().__init__()
        self.blocks = nn.Sequential(Block(3, 16, 1), Block(16, 32, 2), Block(32, 64, 2))
        self.head = nn.Linear(64, classes)

    def forward(self, images: Tensor) -> Tensor:
        return self.head(self.blocks(images).mean(dim=(2, 3)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--batch", type=int, default=32)
    options = parser.parse_args()
    torch.manual_seed(0)
    device = torch.accelerator.current_accelerator(check_available=True) or torch.device("cpu")
    data = TensorDataset(
        torch.randn(options.batch * 4, 3, 32, 32), torch.randint(0, 10, (options.batch * 4,))
    )
    loader = DataLoader(data, batch_size=options.batch, shuffle=True)
    model = ConvNet().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    start = time.perf_counter()
    step = 0
    while step < options.steps:
        for images, labels in loader:
            loss = nn.functional.cross_entropy(model(images.to(device)), labels.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            if step == options.steps:
                break
    seconds = time.perf_counter() - start
    print(f"{device}: {1000 * seconds / options.steps:.1f} ms a step, last loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
