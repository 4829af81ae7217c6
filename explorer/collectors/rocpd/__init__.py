"""rocpd databases, the default output of rocprofv3 since ROCm 7."""
