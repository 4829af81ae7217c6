"""Source lines from what profilers write about Python frames."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass

from explorer.model.ids import site_id

_FRAME = re.compile(r"(?P<file>.*)\((?P<line>-?\d+)\): (?P<function>.+)", re.DOTALL)
_PACKAGES = re.compile(r"(?:^|.*?[\\/])(?:site|dist)-packages[\\/]")
_STANDARD = re.compile(r"(?:^|.*[\\/])lib[\\/]python\d(?:\.\d+)?[\\/]|^<(?!string|stdin|ipython|module)")
_TORCH = re.compile(r"^(?:torch|torch_npu|torch_xla|functorch|caffe2|triton|torchgen|torch_neuronx)[\\/]")
_STANDARD_MODULES = frozenset(sys.stdlib_module_names)


@dataclass(frozen=True, slots=True)
class Frame:
    """One Python frame: `rank` is 2 for user code, 1 for an installed package, 0 for torch and the standard library."""

    file: str
    line: int
    function: str
    rank: int

    @property
    def site_id(self) -> int:
        return site_id(self.file, self.line, self.function)


def parse_frame(text: str) -> Frame | None:
    """A frame written as `file(line): function`; None for built-ins, modules and anything else.

    Files inside an installed package are written relative to it, so that they are equal on every machine.
    """
    match = _FRAME.fullmatch(text.strip())
    if match is None:
        return None
    file = match["file"]
    line = max(int(match["line"]), 0)
    short = _PACKAGES.sub("", file)
    if _TORCH.match(short):
        rank = 0
    elif short != file:
        rank = 1
    elif _STANDARD.search(file):
        rank, short = 0, _STANDARD.sub("", file) or file
    elif (
        file.split("/")[0].removesuffix(".py") in _STANDARD_MODULES and not file.startswith(("/", "."))
    ) or file.startswith("<"):
        rank = 0
    else:
        rank = 2
    return Frame(short, line, match["function"], rank)


def parse_stack(text: str) -> list[Frame]:
    """A `Call stack` text of 2021 and 2022: frames innermost first, separated by semicolons."""
    return [frame for part in text.split(";") if (frame := parse_frame(part)) is not None]
