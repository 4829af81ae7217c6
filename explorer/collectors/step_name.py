"""Which range names mark a training or inference step."""

from __future__ import annotations

import re
from functools import lru_cache

_STEP = re.compile(
    r"^(?:ProfilerStep#|(?:(?:train(?:ing)?|inference|eval(?:uation)?|profile)[ _-]?)?(?:step|iter(?:ation)?)[ _#:=-]*)(\d{1,9})$",
    re.IGNORECASE,
)


@lru_cache(maxsize=65_536)
def step_of(name: str) -> int | None:
    """The step's number, as in 'ProfilerStep#3', 'step 3', 'iteration_3'; None for any other name."""
    match = _STEP.match(name)
    return int(match.group(1)) if match else None
