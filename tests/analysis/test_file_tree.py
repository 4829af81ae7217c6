"""Files with a cost as a tree."""

from __future__ import annotations

from typing import Any

from explorer.analysis.file_tree import file_tree


def file(path: str, cost_ns: int, device_ns: int = 0) -> dict[str, Any]:
    return {
        "file": path,
        "cost_ns": cost_ns,
        "device_ns": device_ns,
        "share": 0.0,
        "device_share": 0.0,
        "line_count": 1,
        "is_user": True,
    }


def test_folders_stand_above_their_files_by_cost() -> None:
    rows = file_tree(
        [
            file("train.py", 50),
            file("lib/deep/inner/a.py", 30),
            file("lib/deep/inner/b.py", 10, 100),
            file("lib/deep/c.py", 5),
        ]
    )
    assert [(row["tree"], row["cost_ns"], row["device_ns"], row["file"]) for row in rows] == [
        ("lib/deep/", 45, 100, None),
        ("  inner/", 40, 100, None),
        ("    b.py", 10, 100, "lib/deep/inner/b.py"),
        ("    a.py", 30, 0, "lib/deep/inner/a.py"),
        ("  c.py", 5, 0, "lib/deep/c.py"),
        ("train.py", 50, 0, "train.py"),
    ]


def test_nothing_has_no_tree() -> None:
    assert file_tree([]) == []


def test_an_absolute_path_keeps_its_slash() -> None:
    assert [row["tree"] for row in file_tree([file("/a/b.py", 1)])] == ["/a/", "  b.py"]
