"""rocprofv3 JSON results."""
