"""Values over time beside the events: host, NVIDIA and Neuron devices. Absent without noise where there is nothing to read."""
