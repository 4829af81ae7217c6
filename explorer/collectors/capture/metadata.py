"""The profiler's metadata text of a row: a JSON fragment without braces whose key order is not fixed."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

_NOISE = frozenset(
    {"Record function id", "Ev Idx", "Sequence number", "Fwd thread id", "Input Dims", "Input type"}
)
_PLAIN = r'^(?:"(?:Record function id|Ev Idx|Sequence number|Fwd thread id)": -?[0-9]+(?:, )?)*$'


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
    if not count:
        return Metadata(sequences, forward_threads, shapes, dtypes, attributes)
    column = pa.array(fragments, pa.string())
    for name, values in (("Sequence number", sequences), ("Fwd thread id", forward_threads)):
        found = pc.struct_field(pc.extract_regex(column, f'"{name}": (?P<value>-?[0-9]+)'), 0)
        given = np.asarray(pc.is_valid(found))
        values[given] = np.asarray(found.drop_null().cast(pa.int64()))
    more = np.flatnonzero(~np.asarray(pc.match_substring_regex(column, _PLAIN)))
    seen: dict[str, tuple[str | None, str | None, str | None]] = {}
    for index in more.tolist():
        text = fragments[index]
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
