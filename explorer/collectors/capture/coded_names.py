"""Many names of few kinds: each text once and a code per row, so that a question costs one call per text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa

I32 = npt.NDArray[np.int32]


class CodedNames(Sequence[str]):
    """A list of names; row `i` is `texts[codes[i]]`."""

    def __init__(self, texts: list[str], codes: I32) -> None:
        self.texts = texts
        self.codes = codes

    @classmethod
    def of(cls, names: Sequence[str]) -> CodedNames:
        """Names as they come."""
        code_of: dict[str, int] = {}
        number = code_of.setdefault
        codes = np.fromiter((number(name, len(code_of)) for name in names), dtype=np.int32, count=len(names))
        return cls(list(code_of), codes)

    def __len__(self) -> int:
        return len(self.codes)

    @overload
    def __getitem__(self, row: int) -> str: ...
    @overload
    def __getitem__(self, row: slice) -> CodedNames: ...
    def __getitem__(self, row: int | slice) -> str | CodedNames:
        if isinstance(row, slice):
            return CodedNames(self.texts, self.codes[row])
        return self.texts[self.codes[row]]

    def take(self, rows: Any) -> CodedNames:
        """The rows of an index array or mask."""
        return CodedNames(self.texts, self.codes[rows])

    def followed_by(self, names: Sequence[str]) -> CodedNames:
        """These rows, then others."""
        if not names:
            return self
        code_of = {text: code for code, text in enumerate(self.texts)}
        number = code_of.setdefault
        more = [number(name, len(code_of)) for name in names]
        return CodedNames(list(code_of), np.concatenate([self.codes, np.array(more, dtype=np.int32)]))

    def where(self, holds: Callable[[str], object]) -> npt.NDArray[np.bool_]:
        """For each row whether `holds` is true of its text."""
        return np.array([bool(holds(text)) for text in self.texts], dtype=bool)[self.codes]

    def found(self, find: Callable[[str], Any]) -> dict[int, Any]:
        """Row -> what `find` returns for its text, for those where that is not empty."""
        answers = [find(text) for text in self.texts]
        rows = np.flatnonzero(np.array([bool(answer) for answer in answers], dtype=bool)[self.codes])
        return {row: answers[code] for row, code in zip(rows.tolist(), self.codes[rows].tolist())}

    def arrow(self) -> pa.DictionaryArray:
        """As a dictionary-encoded column."""
        return pa.DictionaryArray.from_arrays(pa.array(self.codes), pa.array(self.texts, pa.string()))
