"""Everything that makes events: the live profiler, the line recorder, telemetry samplers, one importer per format."""
