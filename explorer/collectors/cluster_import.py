"""An import by rank, each a task of its own: on a Dask cluster, with inputs and run on any store that fsspec opens.

A task may run twice (its worker died, or was thought dead): a rank whose manifest is finished is not imported again, and
parts that a killed task left behind are in no manifest, so nothing is lost or counted twice.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from explorer.collectors import import_trace as one_machine
from explorer.collectors.claimed_folder import scratch_path
from explorer.collectors.import_trace import ImportReport
from explorer.collectors.input_files import Inputs, find_inputs, natural_order
from explorer.collectors.kineto.merged import holds_ranks, ranks_named
from explorer.collectors.new_run import finished_ranks, new_run
from explorer.collectors.options import DEFAULTS, ImportOptions
from explorer.collectors.source import Limits, Source, open_source
from explorer.model.errors import InputError, UsageError
from explorer.store.cluster import each
from explorer.store.location import Location, is_remote, open_store, why
from explorer.store.manifest import decode, manifest_path

_HEAD_BYTES = 4 << 20
"""So much of a remote file is read here to recognise it; its worker reads the whole."""


@dataclass(frozen=True)
class RankTask:
    """One rank's work: `path` and `member` of its source, those of sources joined to it, and how its rank is known."""

    path: str
    member: str | None
    rank: int
    said: str
    companions: tuple[tuple[str, str | None], ...]
    other_forms: tuple[str, ...]


def import_on_cluster(
    sources: Iterable[str | os.PathLike[str]],
    directory: str | os.PathLike[str],
    scheduler: str | None,
    *,
    options: ImportOptions = DEFAULTS,
) -> ImportReport:
    """`import_trace` with one task per rank on the workers of a Dask scheduler; None: here, one after the other.

    Sources and directory are local paths that every worker sees under the same name, or URLs (s3://...). A local run
    appears whole or not at all; on an object store ranks appear one by one.

    Raises what `import_trace` raises, UsageError without the extra `distributed`, InputError without a scheduler.
    """
    began = time.perf_counter()
    paths = [os.fspath(path) for path in sources]
    if not paths:
        raise UsageError("There is nothing to import.", "Name a trace, or a directory of them.")
    with new_run(directory, add=options.add) as place:
        held = finished_ranks(place.building) if options.add else set()
        with scratch_path() as folder:
            tasks, skipped, size_bytes = _plan(paths, options, folder, held)
        report = ImportReport(place.directory, skipped=skipped)
        report.skipped += [
            (task.path, f"the run holds rank {task.rank} already") for task in tasks if task.rank in held
        ]
        tasks = [task for task in tasks if task.rank not in held]
        wanted = replace(options, progress=None, rank=None)
        items = [(task, place.writing_to, wanted) for task in tasks]
        done = each(scheduler, import_rank, items) if scheduler else _one_by_one(items)
        for task, (one, error) in zip(tasks, done):
            if one is None:
                report.skipped.append((task.path, error or "unknown"))
                continue
            _add(report, one)
        report.check()
    report.directory = place.directory
    report.ranks.sort()
    report.size_bytes = size_bytes
    report.seconds = time.perf_counter() - began
    return report


def _one_by_one(
    items: Iterable[tuple[RankTask, str, ImportOptions]],
) -> Iterator[tuple[ImportReport | None, str | None]]:
    """What `each` gives, made here."""
    for item in items:
        try:
            yield import_rank(*item), None
        except InputError as error:
            yield None, error.message


def import_rank(task: RankTask, where: str, options: ImportOptions) -> ImportReport:
    """Import one rank into the run at `where`; on a worker. Runs any number of times with one result."""
    location = Location.of(where)
    report = ImportReport(where)
    if _is_done(location, task):
        return _told(location, task, report)
    with contextlib.ExitStack() as stack:
        item = _item(task.path, task.member, options.limits, stack)
        item.rank, item.said, item.other_forms = task.rank, task.said, list(task.other_forms)
        item.companions = [_item(path, member, options.limits, stack) for path, member in task.companions]
        if task.said != "given" and item.importer.__name__ == one_machine.KINETO and holds_ranks(item.source):
            item.named_ranks = ranks_named(item.source)
        one_machine._import_one(item, location, options, None, 0, 0, report, alone=False)
    return report


def _plan(
    paths: list[str], options: ImportOptions, folder: str, held: set[int]
) -> tuple[list[RankTask], list[tuple[str, str]], int]:
    """Which file is which rank; remote files are recognised by their beginnings, kept in `folder`."""
    origin: dict[str, str] = {}
    sizes: dict[str, int] = {}
    inputs = Inputs()
    for path in paths:
        if not is_remote(path):
            found = find_inputs([os.path.abspath(path.removeprefix("file://"))], options.limits)
            inputs.named += found.named
            inputs.found += found.found
            inputs.skipped += found.skipped
            inputs.refused += found.refused
            inputs.directories += found.directories
            continue
        inputs.directories.append(path)
        for url, size in _remote_files(path):
            try:
                local = _beginning(url, size, folder)
                origin[local], sizes[local] = url, size
                inputs.found += open_source(local, options.limits)
            except InputError as error:
                inputs.skipped.append((url, error.message))
    if one_machine._neuron_session([*paths]):
        raise UsageError("Neuron profiles are imported on one machine.", "Leave --scheduler out.")
    items = one_machine._pair(one_machine._recognise(inputs))
    one_machine._assign_ranks(items, options, held)

    def place(source: Source) -> tuple[str, str | None]:
        return origin.get(source.path, source.path), source.member

    tasks = [
        RankTask(
            *place(item.source),
            rank=item.rank,
            said=item.said,
            companions=tuple(place(guest.source) for guest in item.companions),
            other_forms=tuple(item.other_forms),
        )
        for item in items
    ]
    total = sum(sizes.get(item.source.path, item.source.size_bytes) for item in items)
    return tasks, inputs.skipped, total


def _remote_files(url: str) -> list[tuple[str, int]]:
    """(URL, bytes) of the files that a URL names: itself, what lies below it, or what its pattern matches."""
    filesystem, path = open_store(url)
    try:
        if any(character in path for character in "*?["):
            names = filesystem.glob(path)
        elif filesystem.isfile(path):
            names = [path]
        else:
            names = filesystem.find(path)
    # Each kind of store raises errors of its own.
    except Exception as error:
        raise InputError(
            f"{url} cannot be read: {why(error)}.", "Check the address and the credentials."
        ) from error
    if not names:
        raise InputError(f"{url} holds no file.", "Check the address.")
    return [
        (str(filesystem.unstrip_protocol(name)), int(filesystem.size(name)))
        for name in sorted(map(str, names), key=natural_order)
        if not name.rsplit("/", 1)[-1].startswith(".")
    ]


def _beginning(url: str, size: int, folder: str) -> str:
    """A local file with the beginning of a remote one, under the last parts of its name (they may say the rank)."""
    import fsspec

    local = os.path.join(tempfile.mkdtemp(dir=folder), *url.split("://", 1)[1].split("/")[-3:])
    os.makedirs(os.path.dirname(local), exist_ok=True)
    with fsspec.open(url, "rb") as remote, open(local, "wb") as file:
        start = remote.read(min(size, _HEAD_BYTES))
        file.write(start)
        if start[:4] == b"PK\x03\x04":
            # The list of an archive's members stands at its end.
            shutil.copyfileobj(remote, file)
    return local


def _item(path: str, member: str | None, limits: Limits, stack: contextlib.ExitStack) -> one_machine._Item:
    local = stack.enter_context(_local(path))
    source = next((one for one in open_source(local, limits) if one.member == member), None)
    module = one_machine.importer_of(source) if source is not None else None
    if source is None or module is None:
        raise InputError(f"{path} is no trace in a known format.")
    return one_machine._Item(source, module, origin="" if local == path else path)


@contextlib.contextmanager
def _local(path: str) -> Iterator[str]:
    """The path itself, or a copy of a remote file for as long as it is needed."""
    if "://" not in path:
        yield path
        return
    import fsspec

    with scratch_path() as folder:
        local = os.path.join(folder, path.rsplit("/", 1)[-1])
        with fsspec.open(path, "rb") as remote, open(local, "wb") as file:
            shutil.copyfileobj(remote, file, 1 << 20)
        yield local


def _is_done(location: Location, task: RankTask) -> bool:
    name = manifest_path(task.rank)
    return location.exists(name) and decode(location.read(name)).finished


def _told(location: Location, task: RankTask, report: ImportReport) -> ImportReport:
    """The report of a rank that an earlier try finished, from its manifest."""
    manifest = decode(location.read(manifest_path(task.rank)))
    report.ranks.append(task.rank)
    one_machine._count(manifest, report)
    if manifest.inputs and manifest.inputs[0].get("format"):
        report.formats.append(str(manifest.inputs[0]["format"]))
    return report


def _add(report: ImportReport, one: ImportReport) -> None:
    report.ranks += one.ranks
    report.events += one.events
    report.rows += one.rows
    report.lost += one.lost
    report.repaired += one.repaired
    report.skipped += one.skipped
    report.formats += [name for name in one.formats if name not in report.formats]
