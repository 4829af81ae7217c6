"""AWS Neuron: Neuron Explorer Parquet directories, summary and legacy JSON, and the capture strategy for Trainium."""
