"""PyTorch execution traces: the operators of a program with their tensors, without times."""
