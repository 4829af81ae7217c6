"""Which recorded file paths are user code, and how a path is written so that machines and runs agree on it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from explorer.collectors.known_packages import package_of

_PACKAGES = re.compile(r"^(?:.*/)?(?:site-packages|dist-packages)/(.+)$", re.IGNORECASE)
_STANDARD = re.compile(r"^(?:.*/)?lib(?:64)?/python\d(?:\.\d+)?t?/(.+)$", re.IGNORECASE)
_WINDOWS_STANDARD = re.compile(r"^[a-z]:/.*python[^/]*/lib/(.+)$", re.IGNORECASE)
_NATIVE = re.compile(r"\.(?:c|cc|cpp|cxx|cu|cuh|h|hpp|hip|so(?:\.\d+)*|dll|dylib|pyx)$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class CodePath:
    """A file path as runs write it, and whether it is user code."""

    file: str
    is_user: bool


@lru_cache(maxsize=65_536)
def code_path(path: str, root: str = "") -> CodePath:
    """Normalise a recorded path.

    Installed packages are written from the package on (`torch/nn/modules/module.py`), the standard library from its
    own folder on, user files relative to `root` where they lie under it, else as recorded; always with forward slashes.
    Frozen, generated (`<string>`) and native files are not user code.
    """
    text = path.replace("\\", "/")
    for pattern in (_PACKAGES, _STANDARD, _WINDOWS_STANDARD):
        if match := pattern.match(text):
            return CodePath(match.group(1), False)
    if not text or text[0] in "<?" or text.startswith(("built-in", "nn.Module:")) or _NATIVE.search(text):
        return CodePath(text, False)
    if package_of(text) is not None:
        return CodePath(text, False)
    base = root.replace("\\", "/").rstrip("/") + "/" if root else ""
    return CodePath(text.removeprefix(base), True)
