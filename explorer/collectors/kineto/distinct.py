"""The distinct numbers of an array, by hashing: several times faster than by sorting."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa


def distinct(values: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[np.int32]]:
    """Each number once, in order of first appearance, and for every value its position among them."""
    encoded = pa.array(values).dictionary_encode()
    return np.asarray(encoded.dictionary), np.asarray(encoded.indices)
