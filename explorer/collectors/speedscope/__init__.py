"""speedscope's own file format."""
