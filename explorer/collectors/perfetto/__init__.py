"""Perfetto protobuf traces (.pftrace, .perfetto-trace): track events."""
