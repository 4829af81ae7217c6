"""Shapes and dtypes of ops as the run keeps them: JSON lists, or whatever another source wrote."""

from __future__ import annotations

import json
from typing import Any


def listed(text: str | None) -> list[Any]:
    """The list a column of shapes or dtypes holds; empty where it is null or no JSON list (Ascend writes "4,8;8,2")."""
    try:
        value = json.loads(text or "[]")
    except ValueError:
        return []
    return value if isinstance(value, list) else []
