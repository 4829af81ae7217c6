"""Importer of torch's flight recorder: the last communication calls of a rank, dumped when a job hangs."""
