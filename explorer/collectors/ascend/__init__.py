"""Ascend profiler databases."""
