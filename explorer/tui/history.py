"""Queries run before, kept between sessions in the user's state folder."""

from __future__ import annotations

import json
import os
from pathlib import Path

KEPT = 200


def history_file() -> Path:
    """$XDG_STATE_HOME/neuron-explorer/sql-history.jsonl, else under ~/.local/state."""
    base = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    return Path(base) / "neuron-explorer" / "sql-history.jsonl"


class History:
    """Earlier queries, the newest last. A folder that cannot be written only means that they are forgotten."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path or history_file()
        self._queries: list[str] = self._read()
        self._at = len(self._queries)
        self._draft = ""

    def _read(self) -> list[str]:
        try:
            lines = self._path.read_text(encoding="utf-8").splitlines()
            queries = [json.loads(line) for line in lines]
        except (OSError, ValueError):
            return []
        return [query for query in queries if isinstance(query, str)][-KEPT:]

    def add(self, query: str) -> None:
        """Remember a query; a repeated one moves to the end."""
        query = query.strip()
        if not query:
            return
        self._queries = [*(q for q in self._queries if q != query), query][-KEPT:]
        self._at = len(self._queries)
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._path.write_text("".join(json.dumps(q) + "\n" for q in self._queries), encoding="utf-8")
        except OSError:
            return

    def older(self, draft: str) -> str | None:
        """The query before; `draft` is what to come back to. None at the oldest."""
        if self._at == len(self._queries):
            self._draft = draft
        while self._at > 0:
            self._at -= 1
            if self._queries[self._at] != draft.strip():
                return self._queries[self._at]
        return None

    def newer(self) -> str | None:
        """The query after, at last the draft; None when that is shown already."""
        if self._at >= len(self._queries):
            return None
        self._at += 1
        return self._queries[self._at] if self._at < len(self._queries) else self._draft
