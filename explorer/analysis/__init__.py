"""Answers about a run: a DuckDB engine with one documented view per SQL file, and rules that name bottlenecks."""
