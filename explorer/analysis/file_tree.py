"""Files with a cost as a tree of folders, the costliest first on every level."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

_SUMS = ("cost_ns", "device_ns", "share", "device_share", "line_count")
INDENT = "  "


@dataclass
class _Folder:
    folders: dict[str, _Folder] = field(default_factory=dict)
    files: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)

    def every(self) -> Iterable[Mapping[str, Any]]:
        """Every file in it, at any depth."""
        yield from (row for _, row in self.files)
        for folder in self.folders.values():
            yield from folder.every()


def file_tree(files: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows of `files_of` under rows of their folders.

    Adds `tree`, the name indented by its depth; a folder has the sums of its files and no `file`. Folders that hold one
    folder only share a row with it.
    """
    root = _Folder()
    for row in files:
        *parents, name = str(row["file"]).split("/")
        folder = root
        for parent in parents:
            folder = folder.folders.setdefault(parent, _Folder())
        folder.files.append((name, row))
    return list(_rows(root, 0))


def _rows(folder: _Folder, depth: int) -> Iterable[dict[str, Any]]:
    entries: list[tuple[float, str, _Folder | Mapping[str, Any]]] = []
    for name, row in folder.files:
        entries.append((_cost(row), name, row))
    for name, inner in folder.folders.items():
        while len(inner.folders) == 1 and not inner.files:
            (below,) = inner.folders
            name, inner = f"{name}/{below}", inner.folders[below]
        entries.append((sum(_cost(row) for row in inner.every()), f"{name}/", inner))
    for _, name, entry in sorted(entries, key=lambda item: (-item[0], item[1])):
        tree = INDENT * depth + name
        if not isinstance(entry, _Folder):
            yield {**entry, "tree": tree}
            continue
        own = list(entry.every())
        sums: dict[str, Any] = {key: sum(row[key] or 0 for row in own) for key in _SUMS}
        yield {
            **sums,
            "tree": tree,
            "file": None,
            "is_user": any(row["is_user"] for row in own),
            "_dim": True,
        }
        yield from _rows(entry, depth + 1)


def _cost(row: Mapping[str, Any]) -> float:
    return float((row["cost_ns"] or 0) + (row["device_ns"] or 0))
