"""The programs of the planted benchmark: which there are, what is planted, and at which line."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.planted import clean, programs

_MARK = re.compile(r"# fault(?: (?P<offset>[+-]\d+))?\s*$")


@dataclass(frozen=True)
class Case:
    """A slow program with its fault, or a clean one (no kinds, no line)."""

    name: str
    kinds: tuple[str, ...]
    file: str
    lines: tuple[int, ...]
    run: Callable[..., None]
    needs_wall_clock: bool = False
    held_out: bool = False
    """Written after the rules, and before looking at what they say of it"""

    @property
    def is_clean(self) -> bool:
        return not self.kinds


def planted_cases() -> list[Case]:
    """Programs with a fault: `program(slow, steps, step)`, KIND (the rules that may name it) and a line marked `# fault`."""
    return [_case(f"{programs.__name__}.{name}") for name in _names(programs)]


def clean_cases() -> list[Case]:
    """Programs without a fault: `program(steps, step)`."""
    return [_case(f"{clean.__name__}.{name}") for name in _names(clean)]


def _names(package: Any) -> list[str]:
    return sorted(module.name for module in pkgutil.iter_modules(package.__path__))


def _case(path: str) -> Case:
    module = importlib.import_module(path)
    kind = getattr(module, "KIND", ())
    lines = []
    with open(module.__file__, encoding="utf-8") as source:
        for number, text in enumerate(source, 1):
            if match := _MARK.search(text):
                lines.append(number + int(match["offset"] or 0))
    name = path.rsplit(".", 1)[1]
    return Case(
        name,
        (kind,) if isinstance(kind, str) else tuple(kind),
        module.__file__,
        tuple(lines),
        module.program,
        getattr(module, "WALL_CLOCK", False),
        getattr(module, "HELD_OUT", False),
    )
