"""Names of a NeuronCore's engines: the profile's tables spell them differently, the run uses one spelling."""

from __future__ import annotations

ENGINES = ("Tensor", "Vector", "Scalar", "GpSimd", "Sync")
"""As table Instruction writes them."""

COMPUTE_ENGINES = ("Tensor", "Vector", "Scalar", "GpSimd")

_ALIASES = {
    # The kernel interface's short names: public NKI reference, nki.isa engine enum.
    "pe": "Tensor",
    "tensore": "Tensor",
    "dve": "Vector",
    "vectore": "Vector",
    "act": "Scalar",
    "activation": "Scalar",
    "scalare": "Scalar",
    "pool": "GpSimd",
    "gpsimde": "GpSimd",
    "sp": "Sync",
    "synce": "Sync",
}

ENGINE_OF_NAME = {name.lower(): name for name in ENGINES} | _ALIASES
"""Lower-case spelling to the run's spelling."""


def engine_name(text: str) -> str:
    """The run's spelling of an engine; unknown names stay as they are."""
    key = text.strip().lower().removesuffix("_engine").removesuffix(" engine")
    return ENGINE_OF_NAME.get(key, text.strip())
