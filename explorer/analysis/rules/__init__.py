"""One bottleneck rule per file."""
