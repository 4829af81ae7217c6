"""Whose code a file is: the user's, a library that works with torch, or neither."""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from types import FrameType, FunctionType, ModuleType
from typing import Any

SKIP = 0
"""Not recorded: torch itself, the standard library, libraries that do not use torch, this package."""
LIBRARY = 1
"""Recorded with is_user false: installed code that works with torch (transformers, lightning ...)."""
USER = 2
"""Recorded as user code."""

# Backends and compilers beneath the model: their frames explain nothing to the person who wrote the model.
_BENEATH = frozenset(
    [
        "torch",
        "functorch",
        "torchgen",
        "triton",
        "torch_xla",
        "torch_neuronx",
        "neuronxcc",
        "libneuronxla",
        "torch_npu",
        "intel_extension_for_pytorch",
        "_pytest",
        "pytest",
        "pluggy",
        "debugpy",
        "pydevd",
        "coverage",
    ]
)
_OURS = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def package_roots() -> tuple[str, ...]:
    """Directories that hold installed packages, longest first."""
    names = {sysconfig.get_path(key) for key in ("purelib", "platlib")}
    names |= {
        path for path in sys.path if os.path.basename(path.rstrip("/")) in ("site-packages", "dist-packages")
    }
    return tuple(sorted({os.path.abspath(name) for name in names if name}, key=len, reverse=True))


def standard_roots() -> tuple[str, ...]:
    """Directories of the standard library."""
    names = {sysconfig.get_path(key) for key in ("stdlib", "platstdlib")} | {os.path.dirname(os.__file__)}
    return tuple(sorted({os.path.abspath(name) for name in names if name}, key=len, reverse=True))


class UserCode:
    """Classifies files. `include` and `exclude` are globs on the absolute path or on the package-relative one
    (`transformers/models/llama/*`); exclude wins, and both win over the defaults.

    By default user code is whatever is neither torch, nor the standard library, nor installed in site-packages, nor
    generated inside a frozen module. Code made by exec, notebooks and the like has no file and counts as the user's.
    """

    def __init__(self, include: Iterable[str] = (), exclude: Iterable[str] = ()) -> None:
        self.include = tuple(include)
        self.exclude = tuple(exclude)
        self._packages = tuple(root + os.sep for root in package_roots())
        self._standard = tuple(root + os.sep for root in standard_roots())
        self._ours = os.path.join(_OURS, "")

    def kind(self, file: str, variables: Mapping[str, Any] | None = None) -> int:
        """SKIP, LIBRARY or USER. `variables` are the globals of a frame of that file: they tell whether a library uses
        torch; without them a library is skipped."""
        path = file if file.startswith("<") else os.path.abspath(file)
        if path.startswith("<eval_with_key>"):
            # Code that FX generates: one line per node of a graph, translated to the program's lines afterwards.
            return LIBRARY
        relative = self.relative_to_package(path)
        if self._matches(self.exclude, path, relative):
            return SKIP
        if self._matches(self.include, path, relative):
            return USER
        if path.startswith(("<frozen ", self._ours)):
            return SKIP
        if relative is not None:
            package = relative.split("/", 1)[0].removesuffix(".py")
            if package in _BENEATH or variables is None:
                return SKIP
            return LIBRARY if _uses_torch(variables) else SKIP
        if path.startswith(self._standard):
            return SKIP
        return USER

    def kind_of_frame(self, frame: FrameType) -> int:
        """As `kind`; code without a file belongs to whoever owns the module it runs in."""
        code = frame.f_code
        file = code.co_filename
        variables = frame.f_globals
        kind = self.kind(file, variables)
        name = str(variables.get("__name__") or "")
        if (
            kind == USER
            and name.startswith(("torch.", "triton."))
            and not self._matches(self.include, file, self.relative_to_package(file))
        ):
            # Wrappers that Inductor generates lie in a cache folder, but are modules of torch.
            return SKIP
        if kind != USER or not file.startswith("<"):
            return kind
        if code.co_qualname.startswith("__create_fn__") or name.startswith("namedtuple_"):
            # Methods that dataclasses and namedtuples generate: their time belongs to the line that calls them.
            return SKIP
        owner = variables.get("__file__")
        if isinstance(owner, str) and not owner.startswith("<"):
            return self.kind(owner, variables)
        module = sys.modules.get(name)
        if name and name != "__main__":
            file_of_module = getattr(module, "__file__", None)
            return self.kind(file_of_module, variables) if isinstance(file_of_module, str) else USER
        if name:
            return USER
        # Text run in a bare namespace: Dynamo's guards and Inductor's helpers look like the user's own exec, but for
        # who calls them and how they are named.
        caller = frame.f_back
        installed = caller is not None and self.relative_to_package(caller.f_code.co_filename) is not None
        return SKIP if installed or code.co_qualname.startswith("___") else USER

    def relative_to_package(self, path: str) -> str | None:
        """Path below site-packages with forward slashes; None for a file outside it."""
        for root in self._packages:
            if path.startswith(root):
                return path[len(root) :].replace(os.sep, "/")
        return None

    @staticmethod
    def _matches(patterns: tuple[str, ...], path: str, relative: str | None) -> bool:
        return any(
            fnmatchcase(path, pattern) or (relative is not None and fnmatchcase(relative, pattern))
            for pattern in patterns
        )


def being_imported(variables: Mapping[str, Any]) -> bool:
    """Whether a module is still at its own import: what it will hold is not known yet."""
    return bool(getattr(variables.get("__spec__"), "_initializing", False))


def _uses_torch(variables: Mapping[str, Any]) -> bool:
    """Whether a module's globals hold something of torch's. Looks at plain types only: no user `__getattr__` runs."""
    for value in list(variables.values()):
        kind = type(value)
        if kind is ModuleType:
            name = value.__name__
        elif kind is FunctionType or isinstance(value, type):
            name = getattr(value, "__module__", None) or ""
        else:
            continue
        if isinstance(name, str) and (name == "torch" or name.startswith("torch.")):
            return True
    return False
