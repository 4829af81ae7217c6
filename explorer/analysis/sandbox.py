"""SQL from outside: one read-only statement over the run's tables and views, with a time limit and a row cap.

What holds the line, from the inside out:

1. The connection has no access to files or the network (`enable_external_access=false`), cannot load extensions, does not
   see Python variables, and its configuration is locked. The run's tables are registered pyarrow datasets, so nothing
   needs that access. Memory, threads and spill space are bounded.
2. Only one statement, of type SELECT (DESCRIBE, SHOW and SUMMARIZE are), or EXPLAIN of one.
3. The parsed statement is walked: table functions come from a short list, and functions with effects are refused.
4. A timer interrupts it; rows and bytes beyond the caps are not fetched.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import shutil
import tempfile
import threading
import uuid
from collections.abc import Iterator
from typing import Any

import duckdb
import pyarrow as pa

from explorer.analysis.column_names import distinct_names
from explorer.analysis.computed import compute
from explorer.analysis.engine import Engine
from explorer.analysis.relations import Relations, literal
from explorer.analysis.result import Result
from explorer.model.errors import QueryError
from explorer.store.reader import RunReader

MAX_BYTES = 64 << 20
"""Most bytes of rows an answer may hold."""

MAX_TEXT = 100_000
"""Longest statement, in characters."""

TABLE_FUNCTIONS = frozenset(
    [
        "range",
        "generate_series",
        "unnest",
        "repeat",
        "json_each",
        "json_tree",
        "pragma_table_info",
        "pragma_show",
        "summary",
        "histogram",
        "histogram_values",
        "duckdb_columns",
        "duckdb_tables",
        "duckdb_views",
        "duckdb_functions",
        "duckdb_types",
        "duckdb_keywords",
    ]
)
"""Table functions a statement may call: they read nothing but the run and the catalogue."""

FORBIDDEN_FUNCTIONS = frozenset(
    ["write_log", "nextval", "getenv", "set_config", "query", "query_table", "sleep_ms"]
)
"""Scalar functions with effects, or none of a reader's business."""

PADDING_FUNCTIONS = frozenset(("repeat", "lpad", "rpad"))
MAX_PADDING = 10_000
"""They make their text in one go that no timer can interrupt, so their length must be a number up to this."""

_EXPLAIN = re.compile(r"(?is)\A\s*explain\b\s*(analyze\b\s*)?(\([^()]*\)\s*)?")
_UNDECODED = re.compile("[\ud800-\udfff]")
_COMMENTS = re.compile(r"(?s)\A(\s+|--[^\n]*(\n|\Z)|/\*.*?\*/)+")


class Sandbox:
    """A locked DuckDB connection over a run.

    Args:
        reader: the run.
        memory_limit: as DuckDB writes it.
        threads: worker threads; None: all cores.
        spill_limit: most disk space for intermediate results, as DuckDB writes it.
    """

    def __init__(
        self,
        reader: RunReader,
        *,
        memory_limit: str = "2GB",
        threads: int | None = None,
        spill_limit: str = "8GB",
    ) -> None:
        self._lock = threading.Lock()
        self._cancelled = threading.Event()
        self._connection = duckdb.connect(":memory:")
        self._parser = duckdb.connect(":memory:")
        self._spill = os.path.join(tempfile.gettempdir(), f"neuron-explorer-{uuid.uuid4().hex}")
        settings = {
            "memory_limit": literal(memory_limit),
            "temp_directory": literal(self._spill),
            "max_temp_directory_size": literal(spill_limit),
            "preserve_insertion_order": "false",
            "enable_progress_bar": "false",
            "python_enable_replacements": "false",
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "allow_community_extensions": "false",
            "allow_persistent_secrets": "false",
        }
        if threads:
            settings["threads"] = str(int(threads))
        for connection in (self._parser, self._connection):
            for name, value in settings.items():
                connection.execute(f"SET {name}={value}")
            connection.execute("SET enable_external_access=false")
            connection.execute("SET lock_configuration=true")
        self._trusted: Engine | None = None
        self._reader, self._settings = reader, (memory_limit, threads)
        self.relations = Relations(reader, self._connection, direct=False, compute=self._compute)

    def _compute(self, name: str) -> pa.Table:
        """A computed table, made on a trusted connection: the code that makes it is ours."""
        if self._trusted is None:
            memory_limit, threads = self._settings
            self._trusted = Engine(self._reader, memory_limit=memory_limit, threads=threads)
        return compute(name, self._trusted)

    def sql(self, text: str, *, timeout_s: float = 30.0, max_rows: int = 10_000) -> Result:
        """Run one statement; at most `max_rows` rows (`truncated` says whether there were more). Columns of one name are
        numbered: a, a_1.

        Raises QueryError with one line: refused, wrong, cancelled, or longer than `timeout_s` seconds.
        """
        with self._lock:
            self._cancelled.clear()
            statement = self._checked(text)
            if lack := self.relations.unavailable(statement):
                raise QueryError(f"{lack[0]} needs the table {lack[1]}, which this run does not hold.")
            expired = threading.Event()

            def stop() -> None:
                expired.set()
                self._connection.interrupt()

            timer = threading.Timer(min(max(timeout_s, 0.001), threading.TIMEOUT_MAX), stop)
            timer.daemon = True
            try:
                self.relations.prepare(statement)
                timer.start()
                if self._cancelled.is_set():
                    raise duckdb.InterruptException("cancelled")
                table, truncated = _fetch(self._connection.sql(statement), max_rows)
            except (duckdb.Error, pa.ArrowException, RuntimeError) as error:
                if self._cancelled.is_set():
                    raise QueryError("The query was cancelled.") from None
                if expired.is_set():
                    raise QueryError(
                        f"The query was stopped after {timeout_s:g} s.", "Narrow it down, or raise --timeout."
                    ) from None
                raise QueryError(self._explained(error)) from None
            finally:
                timer.cancel()
                if timer.ident is not None:
                    timer.join()
            table = table.rename_columns(distinct_names(table.column_names))
            return Result(table, "neuron-explorer/query/1", text, truncated)

    def cancel(self) -> None:
        """Stop the statement that is running, if one is; it raises QueryError."""
        self._cancelled.set()
        self._connection.interrupt()
        if self._trusted is not None:
            self._trusted.interrupt()

    def _checked(self, text: str) -> str:
        """The statement without comments before it and semicolon behind it. Raises QueryError when it is not for us."""
        if len(text) > MAX_TEXT:
            raise QueryError(f"The statement is longer than {MAX_TEXT} characters.")
        if "\0" in text:
            raise QueryError("The statement holds a zero character.")
        if _UNDECODED.search(text):
            raise QueryError("The statement is not UTF-8.")
        text = _COMMENTS.sub("", text)
        body = text
        if explain := _EXPLAIN.match(text):
            body = text[explain.end() :]
            options = (explain.group(2) or "").lower()
            if options and not re.fullmatch(
                r"\(\s*(analyze|format\s+\w+)(\s*,\s*(analyze|format\s+\w+))*\s*\)\s*", options
            ):
                raise QueryError("EXPLAIN takes the options ANALYZE and FORMAT only.")
        for part in (text, body):
            self._one_statement(part, allow_explain=part is text and body is not text)
        self._walk(body)
        return text

    def _one_statement(self, text: str, *, allow_explain: bool) -> None:
        try:
            statements = self._parser.extract_statements(text)
        except duckdb.Error as error:
            raise QueryError(self._explained(error)) from None
        if not statements:
            raise QueryError("The query is empty.", 'Try: "SELECT * FROM lines LIMIT 10"')
        if len(statements) > 1:
            raise QueryError("Only one statement at a time.")
        kind = statements[0].type
        if kind == duckdb.StatementType.MULTI:
            raise QueryError(
                "PIVOT is not supported here.", "Write it with FILTER or CASE, or use .df().pivot()."
            )
        if kind != duckdb.StatementType.SELECT and not (
            allow_explain and kind == duckdb.StatementType.EXPLAIN
        ):
            raise QueryError(
                f"{kind.name.replace('_', ' ')} is not allowed; queries only read.",
                "Use SELECT, DESCRIBE, SHOW, SUMMARIZE or EXPLAIN.",
            )

    def _walk(self, body: str) -> None:
        """Refuse functions that reach outside the run, by the parsed form of the statement."""
        (document,) = self._parser.execute("SELECT json_serialize_sql($1::VARCHAR)", [body]).fetchone() or (
            "{}",
        )
        tree = json.loads(document)
        if tree.get("error", True):
            message = str(tree.get("error_message", "it cannot be checked")).split("\n")[0]
            raise QueryError(f"The statement is refused: {message}")
        for name, arguments, is_table_function in _functions(tree):
            lowered = name.lower()
            if is_table_function and lowered not in TABLE_FUNCTIONS:
                raise QueryError(f"The table function {name} is not allowed; queries read the run only.")
            if lowered in FORBIDDEN_FUNCTIONS:
                raise QueryError(f"The function {name} is not allowed.")
            if lowered in PADDING_FUNCTIONS and not is_table_function and not _short(arguments):
                raise QueryError(
                    f"The length given to {name} must be a number up to {MAX_PADDING}.",
                    "bar() draws bars of any value.",
                )

    def _explained(self, error: BaseException) -> str:
        """One line from a DuckDB error, with the nearest names of this run."""
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        message = re.sub(r"\A[A-Z]\w*( \w+)? Error: ", "", lines[0]) if lines else type(error).__name__
        if match := re.search(r"Table with name (\S+) does not exist", message):
            close = difflib.get_close_matches(match.group(1).lower(), self.relations.names(), n=2, cutoff=0.5)
            hint = f" Did you mean {' or '.join(close)}?" if close else " SHOW TABLES lists what there is."
            return f"There is no table or view {match.group(1)}.{hint}"
        if "disabled through configuration" in message or "file system operations are disabled" in message:
            return "Queries read the run only, not files or the network."
        hints = [line for line in lines[1:] if line.lower().startswith(("candidate", "did you mean"))]
        if hints:
            names = re.findall(r'"([^"]+)"', hints[0])
            if names:
                message = f"{message.rstrip('!.')}. Did you mean {' or '.join(dict.fromkeys(names[:3]))}?"
        position = next((line for line in lines if line.startswith("LINE ")), "")
        return f"{message} ({position[:120]})" if position and "syntax error" in message else message

    def close(self) -> None:
        """Close the connections and remove what was spilled."""
        self._connection.close()
        self._parser.close()
        if self._trusted is not None:
            self._trusted.close()
        shutil.rmtree(self._spill, ignore_errors=True)


def _functions(node: Any, is_table_function: bool = False) -> Iterator[tuple[str, list[Any], bool]]:
    """Every function called in a parsed statement, its arguments, and whether it stands in FROM."""
    if isinstance(node, dict):
        if node.get("class") == "FUNCTION" and "function_name" in node:
            yield (
                str(node["function_name"]),
                node.get("arguments") or node.get("children") or [],
                is_table_function,
            )
        for key, value in node.items():
            yield from _functions(value, node.get("type") == "TABLE_FUNCTION" and key == "function")
    elif isinstance(node, list):
        for value in node:
            yield from _functions(value, is_table_function)


def _short(arguments: list[Any]) -> bool:
    """Whether the second argument is a whole number up to MAX_PADDING."""
    if len(arguments) < 2:
        return False
    argument = arguments[1].get("expression", arguments[1])
    written = argument.get("literal", {}).get("text") or argument.get("value", {}).get("value")
    return str(written).isdecimal() and int(written) <= MAX_PADDING


def _fetch(answer: duckdb.DuckDBPyRelation, max_rows: int) -> tuple[pa.Table, bool]:
    """At most `max_rows` rows and MAX_BYTES bytes, and whether there were more."""
    batches: list[pa.RecordBatch] = []
    rows = size = 0
    reader = answer.to_arrow_reader(min(max(max_rows, 1) + 1, 10_000))
    try:
        for batch in reader:
            batches.append(batch)
            rows += batch.num_rows
            size += batch.nbytes
            if rows > max_rows or size > MAX_BYTES:
                break
    finally:
        reader.close()
    table = pa.Table.from_batches(batches, reader.schema)
    cut = table.slice(0, min(max_rows, table.num_rows))
    if size > MAX_BYTES and cut.num_rows:
        cut = cut.slice(0, max(1, int(cut.num_rows * MAX_BYTES / max(cut.nbytes, 1))))
    return cut, cut.num_rows < rows
