"""The live capture: one idea a file. Only this package and `lines` know torch, and import it inside functions."""
