"""Ranges that mark one forward pass of a serving engine, with its phase and the tokens of its batch.

vLLM's workers put a range around each `execute_model`. Its name is `execute_context_<requests>(<tokens>)_generation_<requests>(<tokens>)`
(context tokens are prefill, generation tokens decode), in earlier versions `execute_new_<requests>_cached_<requests>`, which counts the requests that
are new in this pass and the others, and no tokens.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

_TOKENS = re.compile(r"^execute_context_(\d+)\((\d+)\)_generation_(\d+)\((\d+)\)$")
_REQUESTS = re.compile(r"^execute_new_(\d+)_cached_(\d+)$")


@dataclass(frozen=True, slots=True)
class InferenceStep:
    """Requests and tokens of one pass; tokens are None where the engine does not say them."""

    context_requests: int
    context_tokens: int | None
    generation_requests: int
    generation_tokens: int | None

    @property
    def phase(self) -> str:
        """prefill where the pass holds context tokens (without tokens: new requests), else decode."""
        context = self.context_requests if self.context_tokens is None else self.context_tokens
        return "prefill" if context else "decode"


@lru_cache(maxsize=65_536)
def inference_step_of(name: str) -> InferenceStep | None:
    """What a range's name says of a pass; None for any other name."""
    if match := _TOKENS.match(name):
        return InferenceStep(*(int(number) for number in match.groups()))
    if match := _REQUESTS.match(name):
        return InferenceStep(int(match[1]), None, int(match[2]), None)
    return None
