"""String, enumeration, thread and process names of an Nsight Systems export."""

from __future__ import annotations

from typing import Any

from explorer.collectors.nsys.clock import process_of
from explorer.collectors.sqlite_file import SqliteFile

DICTIONARIES = ("StringIds", "ThreadNames", "PROCESSES")


class Names:
    """Looks up names by id. `rows` counts the dictionary rows read."""

    def __init__(self, file: SqliteFile) -> None:
        self.rows = 0
        self.strings: dict[Any, str] = {}
        for key, value in file.rows("StringIds", ("id", "value")):
            self.rows += 1
            self.strings[key] = value if isinstance(value, str) else str(value)
        self.processes: dict[int | None, str] = {}
        for global_pid, pid, name in file.rows("PROCESSES", ("globalPid", "pid", "name")):
            self.rows += 1
            key = pid if isinstance(pid, int) else process_of(global_pid)
            if name is not None:
                self.processes.setdefault(key, str(name))
        self.threads: dict[Any, str] = {}
        priorities: dict[Any, Any] = {}
        for global_tid, name_id, priority in file.rows("ThreadNames", ("globalTid", "nameId", "priority")):
            self.rows += 1
            # Of several names of a thread the one with the highest priority is shown.
            if global_tid not in priorities or (priority or 0) > (priorities[global_tid] or 0):
                priorities[global_tid] = priority
                self.threads[global_tid] = self.text(name_id)
        self._enums: dict[str, dict[Any, str]] = {}
        for table in file.tables:
            if table.startswith("ENUM_"):
                values = self._enums[table] = {}
                for key, name, label in file.rows(table, ("id", "name", "label")):
                    self.rows += 1
                    values[key] = str(label if label is not None else name)

    def text(self, key: Any) -> str:
        """The string of an id; the id itself as text where the export lacks it."""
        if key is None:
            return ""
        return self.strings.get(key, f"string {key}")

    def enum(self, table: str, key: Any) -> str | None:
        """Label of an enumeration value."""
        if key is None:
            return None
        return self._enums.get(table, {}).get(key, str(key))
