"""How files are named in a run: relative to the project or the package, so that ids agree in every rank and run."""

from __future__ import annotations

import os
import sys

from explorer.collectors.lines.user_code import package_roots, standard_roots
from explorer.model.utf8_text import utf8_text


def project_root(script: str | None = None) -> str:
    """The directory that user files are named from: the repository that holds the script, else the script's folder,
    else the working directory."""
    if script is None:
        main = sys.modules.get("__main__")
        script = getattr(main, "__file__", None) or (sys.argv[0] if sys.argv and sys.argv[0] else None)
    start = os.path.dirname(os.path.abspath(script)) if script and os.path.exists(script) else os.getcwd()
    if start.startswith(
        tuple(root + os.sep for root in package_roots()) + standard_roots()
    ) or _is_program_folder(start):
        start = os.getcwd()
    folder = start
    while True:
        if os.path.exists(os.path.join(folder, ".git")):
            return folder
        above = os.path.dirname(folder)
        if above == folder:
            return start
        folder = above


def _is_program_folder(folder: str) -> bool:
    """bin folders hold launchers (pytest, torchrun), not the project."""
    return folder in (os.path.dirname(sys.executable), os.path.join(sys.prefix, "bin"))


class SourcePaths:
    """Maps files to their name in the run, and back to the real file."""

    def __init__(self, root: str) -> None:
        self.root = os.path.join(root, "")
        self._packages = tuple(os.path.join(path, "") for path in package_roots())
        self._standard = tuple(os.path.join(path, "") for path in standard_roots())
        self._names: dict[str, str] = {}
        self.files: dict[str, str] = {}

    def name(self, file: str) -> str:
        """Name of a code object's file, escaped where it is not UTF-8; names like '<string>' stay."""
        known = self._names.get(file)
        if known is None:
            known = self._names[file] = utf8_text(self._name(file))
            self.files.setdefault(known, file)
        return known

    def _name(self, file: str) -> str:
        if file.startswith("<"):
            return file
        path = os.path.abspath(file)
        for root in self._packages + self._standard:
            if path.startswith(root):
                return path[len(root) :].replace(os.sep, "/")
        if path.startswith(self.root):
            return path[len(self.root) :].replace(os.sep, "/")
        package = _package_folder(path)
        if package is not None:
            return os.path.relpath(path, package).replace(os.sep, "/")
        return path.replace(os.sep, "/")


def _package_folder(path: str) -> str | None:
    """The folder above the outermost package that holds a file; None for a plain script."""
    folder = os.path.dirname(path)
    found = None
    while os.path.exists(os.path.join(folder, "__init__.py")):
        folder = os.path.dirname(folder)
        found = folder
    return found
