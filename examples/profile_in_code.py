"""Record a training loop from inside the program and read the findings in Python.

python examples/profile_in_code.py
"""

from __future__ import annotations

import torch
from torch import nn

from explorer import neuron_profile, open_run


def main() -> None:
    torch.manual_seed(0)
    device = torch.accelerator.current_accelerator(check_available=True) or torch.device("cpu")
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 1)).to(device)
    optimizer = torch.optim.AdamW(model.parameters())
    with neuron_profile() as prof:
        for _ in range(20):
            inputs = torch.stack([torch.randn(64) for _ in range(256)])
            loss = model(inputs.to(device)).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            prof.step()
    run = open_run(prof.directory)
    for finding in run.bottlenecks():
        line = finding.lines[0] if finding.lines else None
        where = f"{line.file}:{line.line}  {line.code}" if line else ""
        print(f"{finding.severity:<6}  {finding.saving_share:4.0%}  {finding.title}  {where}")
    print(f"\nThe costliest lines of {prof.directory}")
    print(run.lines().df()[["file", "line", "code", "share"]].head(5).to_string(index=False))


if __name__ == "__main__":
    main()
