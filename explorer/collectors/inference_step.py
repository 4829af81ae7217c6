"""Ranges that mark one forward pass of a serving engine, with its phase and the tokens of its batch.

vLLM names each pass `execute_context_<requests>(<tokens>)_generation_<requests>(<tokens>)`: context tokens are prefill,
generation tokens decode.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

PATTERN = r"^execute_context_(\d+)\((\d+)\)_generation_(\d+)\((\d+)\)$"
_PASS = re.compile(PATTERN)


@dataclass(frozen=True, slots=True)
class InferenceStep:
    """Requests and tokens of one pass. `phase` is decode where it holds no context tokens, else prefill."""

    context_requests: int
    context_tokens: int
    generation_requests: int
    generation_tokens: int

    @property
    def phase(self) -> str:
        return "prefill" if self.context_tokens else "decode"


@lru_cache(maxsize=65_536)
def inference_step_of(name: str) -> InferenceStep | None:
    """What a range's name says of a pass; None for any other name."""
    match = _PASS.match(name)
    return InferenceStep(*(int(number) for number in match.groups())) if match else None
