# ruff: noqa
"""Trains two layers on the simulated device while recording. program.py RUN BUILD_FOLDER"""

import os
import sys
import time

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)), sys.argv[2]]

import activity_profiler
import device
import torch
from torch import nn

from explorer import neuron_profile

stream = 0


def launched(name, start, end):
    """The device does the work a little later than the host asks for it, on stream 1 for copies."""
    copy = name == "memcpy"
    activity_profiler.rec(
        name + "_kernel", start, start + 500, start + 1000, max(end, start + 1500), int(copy), int(copy), ""
    )


device.HOOK = launched
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2)).to("neuron")


def train(x):
    hidden = model(x)  # forward
    scaled = hidden * 2  # scale
    loss = scaled.sum()  # loss
    loss.backward()  # backward
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(parameter.grad, alpha=-0.1)  # update


with neuron_profile(sys.argv[1], library_code=["*/simulated_device/device.py"]) as prof:
    for _ in range(3):
        batch = torch.ones(3, 4).to("neuron")  # upload
        train(batch)
        prof.step()
sys.stdout.flush()
# Interpreter exit aborts after a backward pass on a Python device.
os._exit(0)
