"""A causal mask is filled element by element in each step."""

import torch
from torch import nn
from torch.nn import functional as F

KIND = "row_loop"


def causal_mask(size):
    mask = torch.zeros(size, size)
    for i in range(size):
        for j in range(i + 1, size):  # fault
            mask[i, j] = float("-inf")  # fault
    return mask


def program(slow, steps, step):
    torch.manual_seed(0)
    size = 40
    projection = nn.Linear(64, 3 * 64)
    x = torch.randn(16, size, 64)
    ready = torch.triu(torch.full((size, size), float("-inf")), diagonal=1)
    for _ in range(steps):
        mask = causal_mask(size) if slow else ready
        q, k, v = projection(x).chunk(3, dim=-1)
        loss = F.scaled_dot_product_attention(q, k, v, attn_mask=mask).square().mean()
        projection.zero_grad()
        loss.backward()
        step()
