"""PyTorch memory snapshots: allocator history of CUDA and NPU devices, and exported memory timelines."""
