"""Import of Nsight Systems SQLite exports (nsys export --type sqlite), every schema version known since 2020."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from explorer.collectors.import_session import ImportSession
from explorer.collectors.nsys import metrics
from explorer.collectors.nsys.clock import Clock
from explorer.collectors.nsys.device import TABLES as DEVICE_TABLES
from explorer.collectors.nsys.device import DeviceRows
from explorer.collectors.nsys.host import HostRows, host_tables
from explorer.collectors.nsys.names import DICTIONARIES, Names
from explorer.collectors.nsys.nvtx import TABLE as NVTX_TABLE
from explorer.collectors.nsys.nvtx import NvtxRows
from explorer.collectors.options import DEFAULTS, ImportOptions
from explorer.collectors.source import Source
from explorer.collectors.source_content import plain_file
from explorer.collectors.sqlite_file import MAGIC, SqliteFile, tables_of
from explorer.collectors.sqlite_report import report_file

if TYPE_CHECKING:
    from explorer.store.writer import RunWriter

NAME = "nsys"
_MARKERS = (
    "META_DATA_EXPORT",
    "EXPORT_META_DATA",
    "TARGET_INFO_SESSION_START_TIME",
    "ANALYSIS_DETAILS",
    "NVTX_EVENTS",
)


def recognises(source: Source) -> bool:
    """An SQLite database with the tables of an export."""
    if not source.head.startswith(MAGIC):
        return False
    tables = tables_of(source)
    return "StringIds" in tables and any(name in _MARKERS or name.startswith("CUPTI_") for name in tables)


def import_source(source: Source, writer: RunWriter, options: ImportOptions = DEFAULTS) -> None:
    """Read a whole export into the run of one rank. Raises InputError when it is no readable database."""
    with plain_file(source) as (path, damage), SqliteFile(path, shown=source.path) as file:
        session = ImportSession(writer, source, NAME, options)
        if damage:
            session.lost("the file", damage)
        _read(file, session)


def _read(file: SqliteFile, session: ImportSession) -> None:
    writer = session.writer
    names, clock = Names(file), Clock.of(file)
    session.merged_rows(names.rows)
    stop = next(
        (row[0] for row in file.rows("ANALYSIS_DETAILS", ("stopTime",)) if isinstance(row[0], int)), None
    )
    host, device = HostRows(session, names, clock), DeviceRows(session, names, clock)
    host.read(file, stop)
    NvtxRows(session, names, clock, host).read(file, stop)
    device.read(file)
    metrics.read_metrics(file, session, clock)
    metrics.read_memory(file, session, names, clock)
    done = {*DICTIONARIES, *DEVICE_TABLES, *host_tables(file), NVTX_TABLE, *metrics.TABLES}
    for table in file.tables:
        if table not in done and not table.startswith("ENUM_"):
            for row in file.records(table):
                _keep(session, table, row, clock)
    _write_devices(file, session, device.devices)
    writer.manifest.host |= _environment(file)
    writer.manifest.attributes["nsys"] = _version(file)
    if clock.known:
        writer.manifest.clock.append({"time_ns": clock.base_ns, "source_ns": 0})
    else:
        writer.health(
            "no_absolute_time",
            "info",
            1,
            "The export does not say when it was taken: times count from its own start.",
        )
    report_file(file, session)
    session.close()


def _keep(session: ImportSession, table: str, row: dict[str, Any], clock: Clock) -> None:
    time = row.get("timestamp", row.get("start"))
    epoch = time + clock.base_ns if isinstance(time, int) else None
    session.source_row("metadata" if epoch is None else "sample", table, row, timestamp_ns=epoch)


def _version(file: SqliteFile) -> dict[str, str]:
    for table in ("META_DATA_EXPORT", "EXPORT_META_DATA"):
        if table in file.tables:
            return {
                str(name): str(value)
                for name, value in file.rows(table, ("name", "value"))
                if "VERSION" in str(name)
            }
    return {}


def _environment(file: SqliteFile) -> dict[str, Any]:
    wanted = {"Hostname": "hostname", "CpuCores": "cpu_count", "OsVersion": "platform"}
    found = file.rows("TARGET_INFO_SYSTEM_ENV", ("name", "value"))
    return {wanted[name]: value for name, value in found if name in wanted}


def _write_devices(file: SqliteFile, session: ImportSession, used: set[int]) -> None:
    rows: dict[int, dict[str, Any]] = {}
    cuda = dict(file.rows("TARGET_INFO_CUDA_DEVICE", ("gpuId", "cudaId")))
    for record in file.records("TARGET_INFO_GPU"):
        gpu = record.get("id")
        number = cuda.get(gpu, record.get("cuDevice", gpu))
        if not isinstance(number, int):
            continue
        capability = record.get("computeMajor"), record.get("computeMinor")
        rows[number] = {
            "device": f"cuda:{number}",
            "name": str(record.get("name", "")),
            "vendor": "nvidia",
            "memory_bandwidth": _float(record.get("memoryBandwidth")),
            "memory_bytes": record.get("totalMemory") if isinstance(record.get("totalMemory"), int) else None,
            "unit_count": record.get("smCount") if isinstance(record.get("smCount"), int) else None,
            "attributes": _attributes(record, capability),
        }
    for number in used - set(rows):
        rows[number] = {"device": f"cuda:{number}", "name": "", "vendor": "nvidia"}
    if rows:
        session.writer.write("devices", [rows[number] for number in sorted(rows)])


def _float(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and value > 0 else None


def _attributes(record: dict[str, Any], capability: tuple[Any, Any]) -> str | None:
    from explorer.collectors.row_buffer import attributes_json

    text = f"{capability[0]}.{capability[1]}" if None not in capability else None
    return attributes_json({**record, "compute_capability": text})
