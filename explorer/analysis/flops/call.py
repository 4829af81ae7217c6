"""One op call as the profiler recorded it: name, input shapes, dtypes and concrete inputs; and the work it means."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

ITEM_BYTES = {
    "float64": 8,
    "float32": 4,
    "float16": 2,
    "bfloat16": 2,
    "float8": 1,
    "int64": 8,
    "int32": 4,
    "int16": 2,
    "int8": 1,
    "bool": 1,
    "complex64": 8,
    "complex128": 16,
}

_NAMES = {
    "double": "float64",
    "float": "float32",
    "c10::half": "float16",
    "half": "float16",
    "c10::bfloat16": "bfloat16",
    "bfloat16": "bfloat16",
    "long int": "int64",
    "long": "int64",
    "int": "int32",
    "short int": "int16",
    "short": "int16",
    "signed char": "int8",
    "char": "int8",
    "unsigned char": "int8",
    "bool": "bool",
    "c10::complex<float>": "complex64",
    "c10::complex<double>": "complex128",
}


def dtype_name(recorded: str) -> str | None:
    """float32, bfloat16 ... from what the profiler writes (float, c10::BFloat16 ...); None for what is no tensor."""
    lower = recorded.lower()
    if lower.startswith(("c10::float8", "float8")):
        return "float8"
    if lower in ITEM_BYTES:
        return lower
    return _NAMES.get(lower)


@dataclass(frozen=True, slots=True)
class Work:
    """Operations (a multiply-add counts two) and the bytes that must move at least, with the formula in words."""

    flops: int
    size_bytes: int
    formula: str


@dataclass(frozen=True, slots=True)
class Call:
    """An op call. `shapes[i]` is a shape, or a list of shapes for a list of tensors; absent inputs are []."""

    name: str
    shapes: list[Any]
    dtypes: list[str]
    concrete: list[str]

    @classmethod
    def parse(cls, name: str, shapes: str, dtypes: str | None, concrete: str | None) -> Call | None:
        """From the JSON lists of the run; None where they are no lists."""
        try:
            dims, types = json.loads(shapes), json.loads(dtypes or "[]")
            values = json.loads(concrete or "[]")
        except ValueError:
            return None
        if not (isinstance(dims, list) and isinstance(types, list) and isinstance(values, list)):
            return None
        return cls(name, dims, [str(t) for t in types], [str(v) for v in values])

    def shape(self, place: int) -> list[int] | None:
        """Shape of one tensor input; None where it is absent, a number, or a list of tensors."""
        if place >= len(self.shapes) or self.dtype(place) is None:
            return None
        shape = self.shapes[place]
        return shape if isinstance(shape, list) and all(isinstance(n, int) for n in shape) else None

    def dtype(self, place: int) -> str | None:
        """dtype of one tensor input."""
        return dtype_name(self.dtypes[place]) if place < len(self.dtypes) else None

    def item_bytes(self, place: int = 0) -> int:
        """Bytes of one element of an input; 4 where unknown."""
        return ITEM_BYTES.get(self.dtype(place) or "", 4)

    def tensor_bytes(self, place: int) -> int:
        """Bytes of one tensor input; 0 where it is absent."""
        shape = self.shape(place)
        return 0 if shape is None else math.prod(shape) * self.item_bytes(place)

    def tensors(self) -> list[int]:
        """Places of the tensor inputs."""
        return [place for place in range(len(self.shapes)) if self.shape(place) is not None]

    def numbers(self, place: int) -> list[int] | None:
        """A list of whole numbers given as a concrete input, such as a stride."""
        if place >= len(self.concrete):
            return None
        try:
            value = json.loads(self.concrete[place])
        except ValueError:
            return None
        if isinstance(value, int):
            return [value]
        return value if isinstance(value, list) and all(isinstance(n, int) for n in value) else None

    def flag(self, place: int) -> bool:
        """A concrete boolean input; False where it is absent."""
        return place < len(self.concrete) and self.concrete[place].lower() in ("true", "1")

    def compute_dtype(self) -> str | None:
        """dtype of the first floating tensor input."""
        for place in range(len(self.dtypes)):
            name = self.dtype(place)
            if name and (name.startswith(("float", "bfloat", "complex"))):
                return name
        return next((d for place in range(len(self.dtypes)) if (d := self.dtype(place))), None)
