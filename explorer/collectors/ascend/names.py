"""String tables, call chains and task details of an Ascend database."""

from __future__ import annotations

from typing import Any

from explorer.collectors.call_stacks import CallStack, CallStacks, Frame
from explorer.collectors.python_frame import parse_frame
from explorer.collectors.sqlite_file import SqliteFile

MERGED = ("STRING_IDS", "PYTORCH_CALLCHAINS", "CONNECTION_IDS", "connectionCats", "TASK_PMU_INFO")


class Names:
    """Looks up strings and call chains by id. `rows` counts the rows read."""

    def __init__(self, file: SqliteFile, stacks: CallStacks) -> None:
        self.rows = 0
        self._stacks = stacks
        self._strings: dict[Any, str] = {}
        for key, value in file.rows("STRING_IDS", ("id", "value")):
            self.rows += 1
            self._strings[key] = str(value)
        self._enums: dict[str, dict[Any, str]] = {}
        for table in file.tables:
            if table.startswith("ENUM_"):
                self._enums[table] = {}
                for key, name in file.rows(table, ("id", "name")):
                    self.rows += 1
                    self._enums[table][key] = str(name)
        self._chains: dict[Any, list[tuple[int, Any]]] = {}
        for key, text, depth in file.rows("PYTORCH_CALLCHAINS", ("id", "stack", "stackDepth")):
            self.rows += 1
            self._chains.setdefault(key, []).append((depth if isinstance(depth, int) else 0, text))
        self._built: dict[Any, CallStack | None] = {}

    def text(self, key: Any) -> str | None:
        """The string of an id; other values as they are."""
        if key is None:
            return None
        return self._strings.get(key, str(key))

    def enum(self, table: str, key: Any) -> str | None:
        """Name of an enumeration value."""
        return None if key is None else self._enums.get(table, {}).get(key, str(key))

    def chain(self, key: Any) -> CallStack | None:
        """A stored call chain, innermost frame first."""
        if key not in self._chains:
            return None
        if key not in self._built:
            frames: list[Frame] = []
            for _, text in sorted(self._chains[key], key=lambda item: item[0]):
                frame = parse_frame(self.text(text) or "")
                if frame is not None:
                    frames.append(frame)
            self._built[key] = self._stacks.stack(frames)
        return self._built[key]


class Connections:
    """Which calls belong together. A PyTorch row names a set; the set holds the ids that device tasks and CANN calls carry."""

    def __init__(self, file: SqliteFile) -> None:
        self.rows = 0
        self.kinds: dict[Any, set[str]] = {}
        for connection, kind in file.rows("connectionCats", ("connectionId", "cat")):
            self.rows += 1
            self.kinds.setdefault(connection, set()).add(str(kind))
        self._sets: dict[Any, list[int]] = {}
        for key, connection in file.rows("CONNECTION_IDS", ("id", "connectionId")):
            self.rows += 1
            if isinstance(connection, int):
                self._sets.setdefault(key, []).append(connection)
        self.calls: dict[int, list[tuple[int, int]]] = {}
        """Connection to the start and number of the PyTorch events that carry it"""
        self.launches: dict[int, int] = {}
        """Connection to the CANN event that carries it"""

    def members(self, key: Any) -> list[int]:
        return self._sets.get(key, [])
