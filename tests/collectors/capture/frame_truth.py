"""The truth about every op: which line Python was executing, asked from the interpreter inside the op itself."""

from __future__ import annotations

import re
import sys
import threading
import time
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

_FRAME = re.compile(r'File "([^"]+)", line (\d+), in (\S+)')


@dataclass(frozen=True)
class Seen:
    """One op as it reached its kernel: when, on which thread, its name, the executing line (file, line, function), and
    for an op of the backward pass the line that made its autograd node."""

    time_ns: int
    native_id: int
    name: str
    line: tuple[str, int, str] | None
    forward_line: tuple[str, int] | None
    in_backward: bool


class FrameTruth(TorchDispatchMode):
    """Writes down every op below autograd. `is_user` tells user files; anomaly mode gives nodes their tracebacks."""

    def __init__(self, is_user: Any, seen: list[Seen] | None = None) -> None:
        super().__init__()
        self.is_user = is_user
        self.seen: list[Seen] = seen if seen is not None else []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        frame: Any = sys._getframe(1)
        while frame is not None and not self.is_user(frame.f_code.co_filename):
            frame = frame.f_back
        line = (frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_qualname) if frame else None
        node = torch._C._current_autograd_node()
        forward = None
        in_backward = node is not None
        while node is not None and node.metadata.get("parent_") is not None:
            # A node that a backward op made (double backward) goes back to the op that one differentiates.
            node = node.metadata["parent_"]
        if node is not None:
            for text in reversed(node.metadata.get("traceback_", [])):
                found = _FRAME.search(text)
                if found and self.is_user(found[1]):
                    forward = (found[1], int(found[2]))
                    break
        self.seen.append(
            Seen(
                time.time_ns(),
                threading.get_native_id(),
                func.name().split(".")[0],
                line,
                forward,
                in_backward,
            )
        )
        return func(*args, **(kwargs or {}))
