"""Columns of `events` made of few words or few rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa


def constant(text: str, count: int) -> pa.Array:
    """One word `count` times, stored once."""
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, np.int32)), pa.array([text]))


def words(choices: Sequence[str | None], places: np.ndarray[Any, Any]) -> pa.Array:
    """The choices at these places, dictionary-encoded."""
    distinct = list(dict.fromkeys(word for word in choices if word is not None))
    code = np.array([distinct.index(word) if word is not None else -1 for word in choices], np.int32)
    codes = code[places]
    return pa.DictionaryArray.from_arrays(
        pa.array(codes, pa.int32(), mask=codes < 0), pa.array(distinct, pa.string())
    )


def column(name: str, rows: list[dict[str, Any]]) -> pa.Array:
    """One column of `events` from rows."""
    kinds = {"track_id": pa.int32(), "step": pa.int32()}
    text = ("category", "name", "attribution", "precision", "attributes")
    kind = kinds.get(name) or (pa.string() if name in text else pa.int64())
    return pa.array([row[name] for row in rows], kind)
