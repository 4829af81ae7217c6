"""What is said about an SQLite input after reading it: losses, repairs, schema parts that were not run."""

from __future__ import annotations

from explorer.collectors.import_session import ImportSession
from explorer.collectors.sqlite_file import SqliteFile, unread_wal_bytes


def report_file(file: SqliteFile, session: ImportSession) -> None:
    """Write losses, repairs and ignored schema parts into the run."""
    for loss in file.losses:
        session.lost(f"table {loss.table}", loss.reason, rows_read=loss.rows_read)
    session.repaired("text that is not UTF-8", file.repaired_texts)
    if file.ignored:
        shown = ", ".join(file.ignored[:5]) + (" ..." if len(file.ignored) > 5 else "")
        session.writer.health(
            "schema_code_ignored",
            "info",
            len(file.ignored),
            f"Views, virtual tables and triggers of the file were not run: {shown}.",
        )
    if size := unread_wal_bytes(file.path):
        session.writer.health(
            "unread_log",
            "warning",
            1,
            f"A write-ahead log of {size} bytes lies beside the file; its rows are not in the run.",
            "Close the program that writes the database, or run 'PRAGMA wal_checkpoint' on a copy, and import again.",
        )
