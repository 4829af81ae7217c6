"""JAX and XLA profiles: XSpace files (.xplane.pb), read by the field numbers of their published schema."""
