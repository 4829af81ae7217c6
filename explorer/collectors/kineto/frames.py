"""Source lines from what profilers write about Python frames."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from explorer.collectors.code_path import code_path
from explorer.collectors.known_packages import package_of
from explorer.model.ids import site_id

_FRAME = re.compile(r"(?P<file>.*)\((?P<line>-?\d+)\): (?P<function>.+)", re.DOTALL)
_VIZTRACER = re.compile(r"(?P<function>.+) \((?P<file>[^()]+):(?P<line>\d+)\)", re.DOTALL)
_GENERATED = re.compile(r"torchinductor_|[\\/]torch_compile_cache[\\/]|eval_with_key")


@dataclass(frozen=True, slots=True)
class Frame:
    """One Python frame: `rank` is 2 for user code, 1 for an installed package, 0 for torch, generated and standard code."""

    file: str
    line: int
    function: str
    rank: int

    @property
    def site_id(self) -> int:
        return site_id(self.file, self.line, self.function)


def parse_frame(text: str) -> Frame | None:
    """A frame written as `file(line): function`, or `function (file:line)` by viztracer; None for anything else."""
    match = _FRAME.fullmatch(text.strip()) or _VIZTRACER.fullmatch(text.strip())
    if match is None:
        return None
    path = code_path(match["file"])
    if path.is_user:
        rank = 0 if _GENERATED.search(path.file) else 2
    else:
        short = path.file != match["file"].replace("\\", "/")
        known = package_of(path.file) or ("installed" if short else "standard")
        rank = 1 if known == "installed" else 0
    return Frame(path.file, max(int(match["line"]), 0), match["function"], rank)


def parse_stack(text: str) -> list[Frame]:
    """A `Call stack` text of 2021 and 2022: frames innermost first, separated by semicolons."""
    return [frame for part in text.split(";") if (frame := parse_frame(part)) is not None]


def frames_of_key(key: str, table: Any) -> list[Frame]:
    """The chain of a key of the top-level `stackFrames` (catapult, speedscope): innermost first.

    Frames that name no file and line keep their name as the function, with their category as the file, at line 0.
    """
    result: list[Frame] = []
    seen: set[str] = set()
    while isinstance(table, dict) and key in table and key not in seen:
        seen.add(key)
        entry = table[key]
        if not isinstance(entry, dict):
            break
        name = str(entry.get("name", ""))
        result.append(parse_frame(name) or Frame(str(entry.get("category", "")), 0, name, 2))
        key = str(entry.get("parent", ""))
    return result
