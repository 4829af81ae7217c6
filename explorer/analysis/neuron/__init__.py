"""Analysis of Neuron device profiles: busy time of engines, overlap, idle time with causes, utilisation, bounds."""
