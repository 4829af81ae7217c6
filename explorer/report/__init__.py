"""Answers as files: HTML, Markdown, Perfetto, speedscope, CSV."""
