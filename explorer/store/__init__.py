"""The run directory: streaming atomic writer, reader, manifest, verify."""
