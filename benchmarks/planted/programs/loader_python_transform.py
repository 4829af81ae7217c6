"""Each sample is normalised in pure Python by the dataset, on the training thread."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "data_loader_stall"


class Samples(Dataset):
    def __init__(self, slow):
        self.values = [[float((i * j) % 17) for j in range(400)] for i in range(512)]
        self.ready = torch.tensor(self.values) / 17
        self.slow = slow

    def __len__(self):
        return len(self.values)

    def __getitem__(self, index):
        if self.slow:
            return torch.tensor([(value / 17) for value in self.values[index]])  # fault
        return self.ready[index]


def program(slow, steps, step):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(400, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, fused=True)
    loader = DataLoader(Samples(slow), batch_size=48)
    for _, batch in zip(range(steps), loader):
        loss = model(batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step()
