"""The vocabulary of a profile: tables, categories, findings, device peaks, errors. Standard library only."""
