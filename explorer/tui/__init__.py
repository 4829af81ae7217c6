"""The terminal UI: one screen per file."""
