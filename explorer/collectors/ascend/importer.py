"""Import of Ascend profiler databases: ascend_pytorch_profiler_*.db of torch_npu, msprof_*.db of msprof."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from explorer.collectors.ascend import device, host, metrics
from explorer.collectors.ascend.names import MERGED, Connections, Names
from explorer.collectors.import_session import ImportSession
from explorer.collectors.options import DEFAULTS, ImportOptions
from explorer.collectors.source import Source
from explorer.collectors.source_content import plain_file
from explorer.collectors.sqlite_file import MAGIC, SqliteFile, tables_of
from explorer.collectors.sqlite_report import report_file

if TYPE_CHECKING:
    from explorer.store.writer import RunWriter

NAME = "ascend_db"


def recognises(source: Source) -> bool:
    """An SQLite database with the string table and a task or API table of the Ascend profiler."""
    if not source.head.startswith(MAGIC):
        return False
    tables = tables_of(source)
    return "STRING_IDS" in tables and bool(tables & {"TASK", "CANN_API", "PYTORCH_API", "COMMUNICATION_OP"})


def find_rank(source: Source) -> tuple[int | None, str]:
    """The rank that the database says it is of, and how that is known."""
    with plain_file(source) as (path, _), SqliteFile(path, shown=source.path) as file:
        ranks = [row[0] for row in file.rows("RANK_DEVICE_MAP", ("rankId",))]
    if len(ranks) == 1 and isinstance(ranks[0], int) and ranks[0] >= 0:
        return ranks[0], "RANK_DEVICE_MAP"
    return None, ""


def import_source(source: Source, writer: RunWriter, options: ImportOptions = DEFAULTS) -> None:
    """Read a whole database into the run of one rank. Raises InputError when it is no readable database."""
    with plain_file(source) as (path, damage), SqliteFile(path, shown=source.path) as file:
        session = ImportSession(writer, source, NAME, options)
        if damage:
            session.lost("the file", damage)
        _read(file, session)


def _read(file: SqliteFile, session: ImportSession) -> None:
    names, connections = Names(file, session.stacks), Connections(file)
    session.merged_rows(names.rows + connections.rows)
    host.HostRows(session, names, connections).read(file)
    work = device.DeviceRows(session, names)
    work.read(file)
    metrics.read_metrics(file, session, names)
    metrics.read_memory(file, session, names)
    _steps(file, session)
    done = {*MERGED, *host.TABLES, *device.TABLES, *device.DETAILS, *metrics.TABLES}
    for table in file.tables:
        if table not in done and not table.startswith("ENUM_"):
            for row in file.records(table):
                _keep(session, table, row)
    _describe(file, session, work.devices)
    report_file(file, session)
    session.close()


def _steps(file: SqliteFile, session: ImportSession) -> None:
    """Steps of the file's own table, where the host rows named none."""
    if session.steps:
        return
    for number, start, end in file.rows("STEP_TIME", ("id", "startNs", "endNs")):
        start, end = host.whole(start), host.whole(end)
        if (
            isinstance(number, int)
            and isinstance(start, int)
            and isinstance(end, int)
            and start <= end < 2**63
        ):
            session.steps.append((number, start, end))


def _keep(session: ImportSession, table: str, row: dict[str, Any]) -> None:
    time = host.whole(row.get("startNs", row.get("timestampNs")))
    epoch = time if isinstance(time, int) else None
    session.source_row("metadata" if epoch is None else "sample", table, row, timestamp_ns=epoch)


def _describe(file: SqliteFile, session: ImportSession, used: set[int]) -> None:
    names = {key: str(name) for key, name in file.rows("NPU_INFO", ("id", "name")) if isinstance(key, int)}
    numbers = sorted(used | set(names))
    if numbers:
        session.writer.write(
            "devices",
            [
                {"device": f"npu:{number}", "name": names.get(number, ""), "vendor": "huawei"}
                for number in numbers
            ],
        )
    for (host_name,) in file.rows("HOST_INFO", ("hostName",)):
        session.writer.manifest.host["hostname"] = str(host_name)
    session.writer.manifest.attributes["ascend"] = {
        str(name): str(value) for name, value in file.rows("META_DATA", ("name", "value"))
    }
