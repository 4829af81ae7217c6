"""The profiler's metadata text of a row: a JSON fragment without braces whose key order is not fixed."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

_NOISE = frozenset(
    {"Record function id", "Ev Idx", "Sequence number", "Fwd thread id", "Input Dims", "Input type"}
)
_PLAIN = re.compile(r'^(?:"(?:Record function id|Ev Idx|Sequence number|Fwd thread id)": -?\d+(?:, )?)*$')


@dataclass(slots=True)
class Metadata:
    """Parsed columns: sequence -1 where absent, forward thread 0 where absent, texts None where absent."""

    sequences: npt.NDArray[np.int64]
    forward_threads: npt.NDArray[np.int64]
    shapes: list[str | None]
    dtypes: list[str | None]
    attributes: list[str | None]


def parse_metadata(fragments: list[str]) -> Metadata:
    """Parse every row; rows that are not valid JSON keep their text under the key 'metadata'."""
    count = len(fragments)
    sequences = np.full(count, -1, dtype=np.int64)
    forward_threads = np.zeros(count, dtype=np.int64)
    shapes: list[str | None] = [None] * count
    dtypes: list[str | None] = [None] * count
    attributes: list[str | None] = [None] * count
    plain = _PLAIN.match
    seen: dict[str, tuple[str | None, str | None, str | None]] = {}
    for index, text in enumerate(fragments):
        if not text:
            continue
        at = text.find('"Sequence number": ')
        if at >= 0:
            end = text.find(",", at)
            sequences[index] = int(text[at + 19 : end if end >= 0 else None])
            at = text.find('"Fwd thread id": ')
            if at >= 0:
                end = text.find(",", at)
                forward_threads[index] = int(text[at + 17 : end if end >= 0 else None])
        if plain(text):
            continue
        # Rows of the same op differ only in their counters: the rest is parsed once.
        key = _counters_out(text)
        parsed = seen.get(key)
        if parsed is None:
            parsed = seen[key] = _parse(text)
        shapes[index], dtypes[index], attributes[index] = parsed
    return Metadata(sequences, forward_threads, shapes, dtypes, attributes)


_COUNTERS = re.compile(r'"(?:Record function id|Ev Idx|Sequence number|Fwd thread id)": -?\d+')


def _counters_out(text: str) -> str:
    return _COUNTERS.sub("", text)


def _parse(text: str) -> tuple[str | None, str | None, str | None]:
    try:
        values: dict[str, Any] = json.loads("{" + text.rstrip().rstrip(",") + "}")
    except ValueError:
        return None, None, json.dumps({"metadata": text}, ensure_ascii=False)
    shapes = values.get("Input Dims")
    dtypes = values.get("Input type")
    rest = {key: value for key, value in values.items() if key not in _NOISE}
    return (
        json.dumps(shapes, separators=(",", ":")) if shapes is not None else None,
        json.dumps(dtypes, separators=(",", ":")) if dtypes is not None else None,
        json.dumps(rest, ensure_ascii=False, separators=(",", ":")) if rest else None,
    )
