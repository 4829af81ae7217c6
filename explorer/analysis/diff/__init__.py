"""Comparing two runs: is the change real, may they be compared, and what explains it."""
