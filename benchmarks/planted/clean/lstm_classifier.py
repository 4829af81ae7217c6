"""An LSTM over sequences, run by the library."""

import torch
from torch import nn


def program(steps, step):
    torch.manual_seed(0)
    embedding, lstm, head = nn.Embedding(100, 64), nn.LSTM(64, 128, batch_first=True), nn.Linear(128, 4)
    parameters = [*embedding.parameters(), *lstm.parameters(), *head.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=0.001, fused=True)
    tokens, labels = torch.randint(0, 100, (32, 24)), torch.randint(0, 4, (32,))
    for _ in range(steps):
        output, _ = lstm(embedding(tokens))
        loss = nn.functional.cross_entropy(head(output[:, -1]), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step()
