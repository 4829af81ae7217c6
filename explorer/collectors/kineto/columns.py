"""Columns of a whole trace, one number per event or row: in memory while they are few, in files of the scratch folder after
that, where every process maps the stretch it needs and the system takes the memory back."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Values: TypeAlias = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class StoredColumn:
    """A column in a file: `count` numbers of the type that `kind` names, as numpy writes types."""

    path: str
    kind: str
    count: int

    def open(self) -> Values:
        """The column, mapped for reading."""
        return np.memmap(self.path, self.kind, "r", shape=(self.count,)) if self.count else self._nothing()

    def between(self, low: int, high: int) -> Values:
        """Copies of the numbers from `low` to `high`."""
        with open(self.path, "rb") as file:
            kind = np.dtype(self.kind)
            file.seek(low * kind.itemsize)
            return np.fromfile(file, kind, high - low)

    def _nothing(self) -> Values:
        return np.empty(0, self.kind)


Column: TypeAlias = Values | StoredColumn


def store_column(values: Values, folder: str, name: str) -> StoredColumn:
    """Write a column to the scratch folder; one that is mapped from there stays as it is."""
    if isinstance(values, np.memmap) and values.nbytes == os.path.getsize(str(values.filename)):
        return StoredColumn(str(values.filename), values.dtype.str, len(values))
    path = os.path.join(folder, f"{name}.column")
    np.ascontiguousarray(values).tofile(path)
    return StoredColumn(path, values.dtype.str, len(values))


def stretch(column: Column, low: int, high: int) -> Values:
    """The numbers from `low` to `high`, wherever the column lies."""
    return column.between(low, high) if isinstance(column, StoredColumn) else column[low:high]


def opened(column: Column) -> Values:
    """The whole column, mapped for reading where it lies in a file."""
    return column.open() if isinstance(column, StoredColumn) else column


def picked(column: Column, places: npt.NDArray[np.integer[Any]]) -> Values:
    """The numbers at some places, wherever the column lies."""
    return np.asarray(opened(column)[places])
