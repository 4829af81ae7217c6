"""Every sample is its own file, read on the training thread when the batch is asked for."""

import os
import tempfile

import numpy
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = ("data_loader_stall", "io_in_step")


class Files(Dataset):
    def __init__(self, folder):
        self.paths = [os.path.join(folder, f"{i}.npy") for i in range(128)]
        for path in self.paths:
            numpy.save(path, numpy.ones(256, dtype=numpy.float32))

    def __len__(self):
        return 1024

    def __getitem__(self, index):
        return torch.from_numpy(numpy.load(self.paths[index % 128]))  # fault


def program(slow, steps, step):
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        files = Files(folder)
        data = files if slow else torch.stack([files[i] for i in range(128)]).repeat(8, 1)
        model = nn.Sequential(
            nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)
        )
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01, fused=True)
        for _, batch in zip(range(steps), DataLoader(data, batch_size=64)):
            loss = model(batch).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step()
