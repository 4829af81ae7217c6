"""Features come as JSON text and are parsed and flattened on the training thread."""

import json

import torch
from torch import nn

KIND = "host_bound"
HELD_OUT = True  # written before its predictions were looked at


def features(records):
    rows = []
    for record in records:
        fields = json.loads(record)  # fault
        rows.append(fields["a"] + fields["b"])
    return torch.tensor(rows)


def program(slow, steps, step):
    torch.manual_seed(0)
    records = [json.dumps({"a": [float(i * j % 13) for j in range(40)], "b": [0.5] * 24}) for i in range(96)]
    ready = features(records)
    model = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001, fused=True)
    for _ in range(steps):
        batch = features(records) if slow else ready
        loss = model(batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step()
