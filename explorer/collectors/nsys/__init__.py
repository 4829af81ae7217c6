"""Nsight Systems SQLite exports."""
