"""Run a small network under torch.compile, where several source lines become one fused kernel.

python examples/compile_model.py --steps 20          (--eager: the same without compilation)
"""

from __future__ import annotations

import argparse
import time

import torch
from torch import Tensor, nn


class GatedLayer(nn.Module):
    """Normalise, two projections, a gate: a chain of small operations that compilation fuses."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        hidden, gate = self.up(self.norm(x)).chunk(2, dim=-1)
        gate = gate * torch.sigmoid(1.702 * gate)
        mixed = torch.tanh(hidden) * gate
        return x + self.down(mixed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--eager", action="store_true", help="do not compile")
    options = parser.parse_args()
    torch.manual_seed(0)
    device = torch.accelerator.current_accelerator(check_available=True) or torch.device("cpu")
    model = nn.Sequential(*(GatedLayer(128) for _ in range(2))).to(device)
    run = model if options.eager else torch.compile(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    inputs = torch.randn(64, 32, 128, device=device)
    run(inputs).square().mean().backward()  # compiles
    start = time.perf_counter()
    for _ in range(options.steps):
        loss = run(inputs).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    seconds = time.perf_counter() - start
    print(f"{device}: {1000 * seconds / options.steps:.1f} ms a step, last loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
