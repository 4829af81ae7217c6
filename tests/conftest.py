"""Property tests are judged by what they find: how long an example takes on a busy machine says nothing."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# Fixtures of property tests hold what every example reads and none changes.
settings.register_profile(
    "any_machine",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("any_machine")
