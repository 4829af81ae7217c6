"""Floating point operations and bytes of framework ops from their shapes: one op family per file."""
