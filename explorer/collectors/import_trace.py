"""Any trace to a run: the format is recognised by content, every rank becomes one partition, nothing is left half-written."""

from __future__ import annotations

import contextlib
import importlib
import itertools
import os
import shutil
import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import TYPE_CHECKING

from explorer.collectors.claimed_folder import scratch_path
from explorer.collectors.file_digest import FileDigest
from explorer.collectors.input_files import Inputs, find_inputs
from explorer.collectors.new_run import finished_ranks, new_run, url_of
from explorer.collectors.options import DEFAULTS, ImportOptions, Progress
from explorer.collectors.source import Source, open_source
from explorer.model.errors import EXIT_DONE, EXIT_PARTIAL, InputError, UsageError
from explorer.store.location import Location, is_remote
from explorer.store.manifest import Manifest
from explorer.store.writer import RunWriter

if TYPE_CHECKING:
    from explorer.collectors.kineto.splitter import TraceText

IMPORTERS = (
    "explorer.collectors.nsys.importer",
    "explorer.collectors.ascend.importer",
    "explorer.collectors.rocpd.importer",
    "explorer.collectors.flight_recorder.importer",
    "explorer.collectors.memory_snapshot.importer",
    "explorer.collectors.memory_snapshot.timeline",
    "explorer.collectors.xplane.importer",
    "explorer.collectors.perfetto.importer",
    "explorer.collectors.rocprof.importer",
    "explorer.collectors.execution_trace.importer",
    "explorer.collectors.speedscope.importer",
    "explorer.collectors.telemetry.monitor_log",
    "explorer.collectors.neuron.summary_json",
    "explorer.collectors.neuron.legacy_json",
    "explorer.collectors.kineto.importer",
)
"""Modules with NAME, recognises(source) and import_source(source, writer, options); the first that recognises a source reads it.

One that also has join(source, writer) adds its source to a rank that another source of the same import fills.
"""

KINETO = IMPORTERS[-1]


@dataclass
class ImportReport:
    """What an import did. `lost` counts stretches and rows that became no event, `repaired` places that were mended."""

    directory: str
    events: int = 0
    rows: int = 0
    lost: int = 0
    repaired: int = 0
    size_bytes: int = 0
    seconds: float = 0.0
    ranks: list[int] = field(default_factory=list)
    formats: list[str] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    """Files that could not be read, with the reason"""

    @property
    def exit_code(self) -> int:
        """0, or 4 where part of the input was lost or repaired."""
        return EXIT_PARTIAL if self.lost or self.repaired or self.skipped else EXIT_DONE

    def check(self) -> None:
        """Raises InputError where none of the traces became a rank."""
        if not self.ranks:
            raise InputError(
                f"None of {len(self.skipped)} traces could be read; the first: {': '.join(self.skipped[0])}"
            )


@dataclass
class _Item:
    source: Source
    importer: ModuleType
    rank: int = 0
    said: str = ""
    companions: list[_Item] = field(default_factory=list)
    """Sources that are joined to this one's rank"""
    other_forms: list[str] = field(default_factory=list)
    """Files of the directory that hold the same recording in another form, and are left out"""
    origin: str = ""
    """Where the source came from, where it is a copy of a remote file"""
    named_ranks: list[int] = field(default_factory=list)
    """The ranks that the rows of a merged file name, where it could not be taken apart"""
    whole: TraceText | None = None
    """The merged file of which this is the first part: its damage is told with it"""


def import_trace(
    sources: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    directory: str | os.PathLike[str],
    *,
    options: ImportOptions = DEFAULTS,
    progress: Progress | None = None,
) -> ImportReport:
    """Import files, directories or globs of traces, local or URLs, into one run; each source becomes one rank of it.

    A directory that already holds a run is left alone: NAME-2, NAME-3 ... is used (`ImportReport.directory`). A local run
    appears whole or not at all.

    Raises InputError when nothing can be read, UsageError when the output cannot be written or the call makes no sense.
    """
    began = time.perf_counter()
    paths = [sources] if isinstance(sources, str | os.PathLike) else list(sources)
    if not paths:
        raise UsageError("There is nothing to import.", "Name a trace, or a directory of them.")
    if any(is_remote(path) for path in paths):
        from explorer.collectors.cluster_import import import_on_cluster

        return import_on_cluster(paths, directory, None, options=options)
    if neuron := _neuron_session(paths):
        return _import_session(neuron, directory, options, progress, began)
    inputs = find_inputs(paths, options.limits)
    items = _pair(_recognise(inputs))
    with (
        scratch_path() as scratch,
        new_run(directory, add=options.add) as place,
    ):
        if options.rank is None:
            items = _apart(items, scratch)
        report = ImportReport(place.directory, skipped=inputs.skipped)
        report.skipped += _raw_neuron(inputs.directories)
        held = finished_ranks(place.building) if options.add else set()
        _assign_ranks(items, options, held)
        items = _new_items(items, held, report)
        total = sum(item.source.size_bytes for item in items)
        done = 0
        for item in items:
            _import_one(item, place.building, options, progress, done, total, report, alone=len(items) == 1)
            done += item.source.size_bytes
        report.check()
    report.directory = place.directory
    report.ranks.sort()
    report.size_bytes = total
    report.seconds = time.perf_counter() - began
    return report


def _apart(items: list[_Item], folder: str) -> list[_Item]:
    """Traces that a tool merged from several ranks, taken apart into one of each."""
    from explorer.collectors.kineto.merged import Split, holds_ranks, ranks_named, split_ranks

    result: list[_Item] = []
    for number, item in enumerate(items):
        found: Split | None = None
        if item.importer.__name__ == KINETO and holds_ranks(item.source):
            # What cannot be read is said when it is imported.
            with contextlib.suppress(InputError):
                if item.companions:
                    item.named_ranks = ranks_named(item.source)
                else:
                    place = os.path.join(folder, str(number))
                    os.makedirs(place)
                    found = split_ranks(item.source, place)
                    item.named_ranks = found.ranks
        if found is None or not found.paths:
            result.append(item)
            continue
        for rank, path in found.paths.items():
            (source,) = open_source(path, item.source.limits)
            whole = found.text if rank == found.ranks[0] else None
            result.append(
                _Item(source, item.importer, rank, "merged file", origin=item.source.path, whole=whole)
            )
    return result


def _neuron_session(paths: list[str | os.PathLike[str]]) -> list[str] | None:
    """Directories of Neuron profiles are sessions: many files make one rank, and one file may tell the ranks of others."""
    if not any(os.path.isdir(path) or os.fspath(path).endswith(".parquet") for path in paths):
        return None
    from explorer.collectors.neuron.session_import import session_roots

    return session_roots(paths)


def _raw_neuron(directories: list[str]) -> list[tuple[str, str]]:
    """Raw Neuron artefacts beside the traces of a directory (a vLLM server leaves both): named with what reads them."""
    from explorer.collectors.neuron.layout import find_artefacts
    from explorer.collectors.neuron.session_import import no_profile

    found = [find_artefacts(directory) for directory in directories]
    return [(artefacts.root, str(no_profile(artefacts))) for artefacts in found if artefacts.raw]


def _import_session(
    roots: list[str],
    directory: str | os.PathLike[str],
    options: ImportOptions,
    progress: Progress | None,
    began: float,
) -> ImportReport:
    from explorer.collectors.neuron.session_import import NAME, import_session

    with new_run(directory, add=options.add) as place:
        done = import_session(
            roots, place.writing_to, rank=options.rank, threads=options.processes, progress=progress
        )
    return ImportReport(
        place.directory,
        events=done.events,
        rows=done.rows,
        lost=done.lost,
        size_bytes=done.size_bytes,
        seconds=time.perf_counter() - began,
        ranks=sorted(done.ranks),
        formats=[NAME],
    )


def importer_of(source: Source) -> ModuleType | None:
    """The module that reads a source, by its content; None where no format fits."""
    for name in IMPORTERS:
        module = importlib.import_module(name)
        if module.recognises(source):
            return module
    return None


def _recognise(inputs: Inputs) -> list[_Item]:
    """The sources that an importer knows; named ones that none knows are skipped, unless there is no other."""
    items: list[_Item] = []
    refused = list(inputs.refused)
    for source in inputs.named:
        if not source.head:
            error = InputError(
                f"{_shown(source)} cannot be read: its data in the archive are damaged.",
                "Copy the archive again.",
            )
            inputs.skipped.append((_shown(source), error.message))
            refused.append(error)
            continue
        module = importer_of(source)
        if module is None:
            start = source.head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
            if start not in (b"{", b"["):
                error = InputError(
                    f"{_shown(source)} is no trace in a known format.",
                    "neuron-explorer reads Kineto and Chrome JSON, Nsight Systems SQLite, XPlane, memory snapshots, "
                    "rocprofv3 JSON and rocpd, Ascend databases, Perfetto track events and speedscope files.",
                )
                inputs.skipped.append((_shown(source), error.message))
                refused.append(error)
                continue
            # The JSON importer knows best what is wrong with a JSON text.
            module = importlib.import_module(KINETO)
        items.append(_Item(source, module))
    found = []
    for source in inputs.found:
        if not source.head:
            inputs.skipped.append((_shown(source), "its data in the archive are damaged"))
        elif (module := importer_of(source)) is not None:
            found.append(_Item(source, module))
    items += _without_other_forms(found)
    if not items:
        if refused:
            raise refused[0]
        archives = dict.fromkeys(source.path for source in inputs.found if source.member is not None)
        where = ", ".join([*inputs.directories, *archives]) or "the input"
        raise InputError(f"{where} holds no trace.", "Give a trace file, or a directory with traces in it.")
    return items


def _without_other_forms(items: list[_Item]) -> list[_Item]:
    """Of a directory, leave out what repeats a recording: Ascend's profiler writes a database and trace_view.json of it."""
    from explorer.collectors.kineto.rank import rank_of

    databases = [item for item in items if item.importer.NAME == "ascend_db"]
    dropped: list[_Item] = []
    for item in items:
        if item.importer.__name__ != KINETO or "trace_view" not in item.source.name.lower():
            continue
        beside = [
            each
            for each in databases
            if os.path.dirname(each.source.path) == os.path.dirname(item.source.path)
        ]
        rank = rank_of(item.source)[0]
        same = [
            each for each in beside if rank is not None and each.importer.find_rank(each.source)[0] == rank
        ]
        # A name without a rank belongs to the only database there is.
        owner = same[0] if same else beside[0] if len(beside) == 1 and rank is None else None
        if owner is not None:
            owner.other_forms.append(item.source.name)
            dropped.append(item)
    return [item for item in items if item not in dropped]


def _pair(items: list[_Item]) -> list[_Item]:
    """Give each source that is joined to another its host: the one of the same rank by name, else by order."""
    from explorer.collectors.kineto.rank import rank_of

    hosts = [item for item in items if item.importer.__name__ == KINETO]
    guests = [item for item in items if hasattr(item.importer, "join")]
    if not hosts or not guests:
        return items
    by_rank = {rank: host for host in hosts if (rank := rank_of(host.source)[0]) is not None}
    for place, guest in enumerate(guests):
        rank = rank_of(guest.source)[0]
        host = by_rank.get(rank) if rank is not None else None
        (host or hosts[min(place, len(hosts) - 1)]).companions.append(guest)
    return [item for item in items if item not in guests]


def _new_items(items: list[_Item], held: Collection[int], report: ImportReport) -> list[_Item]:
    """Those whose ranks the run does not hold yet; the others are said."""
    for item in items:
        if item.rank in held:
            report.skipped.append(
                (item.origin or _shown(item.source), f"the run holds rank {item.rank} already")
            )
    return [item for item in items if item.rank not in held]


def _assign_ranks(items: list[_Item], options: ImportOptions, held: Collection[int] = ()) -> None:
    """What a source says itself, else its file name, else the order; never the same rank twice, nor by order one that is
    held already."""
    from explorer.collectors.kineto.rank import rank_of

    if options.rank is not None:
        if len(items) > 1:
            raise UsageError(f"--rank names one rank, but there are {len(items)} traces.")
        items[0].rank, items[0].said = options.rank, "given"
        return
    taken: set[int] = set()
    open_: list[_Item] = []
    for item in items:
        rank: int | None = item.rank
        if not item.said:
            find = getattr(item.importer, "find_rank", None)
            rank, item.said = find(item.source) if find else (None, "")
            if rank is None:
                rank, item.said = rank_of(item.source)
            if len(item.named_ranks) == 1 and item.said != "distributedInfo":
                rank, item.said = item.named_ranks[0], "rows"
        if rank is None or rank in taken or not 0 <= rank < 1 << 31:
            open_.append(item)
            continue
        item.rank = rank
        taken.add(rank)
    for item in open_:
        item.rank = next(number for number in itertools.count() if number not in taken and number not in held)
        taken.add(item.rank)
        item.said = "order"
    items.sort(key=lambda item: item.rank)


def _import_one(
    item: _Item,
    building: Location,
    options: ImportOptions,
    progress: Progress | None,
    done: int,
    total: int,
    report: ImportReport,
    *,
    alone: bool,
) -> None:
    """Import one source as one rank. Of several sources an unreadable one is skipped and said."""
    source = item.source
    if progress is not None:
        outer = progress

        def inner(part: int, _: int | None) -> None:
            outer(min(done + part, total), total)

        options = replace(options, progress=inner)
    writer = RunWriter(url_of(building), rank=item.rank)
    digest = FileDigest(item.origin if item.said == "merged file" else source.path)
    try:
        item.importer.import_source(source, writer, options)
        _join(item, writer, report)
    except InputError as error:
        digest.join()
        if alone:
            named = error.message.startswith(source.path)
            message = error.message if named else f"{_shown(source)}: {error.message}"
            raise type(error)(message, error.remedy) from error
        report.skipped.append((item.origin or _shown(source), error.message))
        _forget(building, item.rank)
        return
    except OSError as error:
        digest.join()
        raise UsageError(
            f"Cannot write the run to {building.root}: {error.strerror or error}.",
            "Free space, or choose another directory with -o.",
        ) from error
    manifest = writer.manifest
    if not manifest.inputs:
        manifest.inputs.append(
            {"path": source.path, "member": source.member, "size_bytes": source.size_bytes}
        )
    if item.origin:
        manifest.inputs[0]["path"] = item.origin
    manifest.inputs[0] |= {
        "sha256": digest.join(),
        "format": item.importer.NAME,
        "rank_from": item.said or "only one",
    }
    if item.said == "order" and not alone:
        writer.health(
            "rank_by_order",
            "warning",
            1,
            f"{source.name} does not say its rank, or another trace has the same one; it is counted as rank {item.rank} by order.",
            "Name the files by rank, as in rank0.json.",
            "ranks",
        )
    if item.named_ranks or item.whole is not None:
        from explorer.collectors.kineto.merged_health import tell_merged

        tell_merged(item.named_ranks, item.whole, writer)
    for name in item.other_forms:
        writer.health(
            "other_form",
            "info",
            1,
            f"{name} beside it holds the same recording in another form; it was not imported a second time.",
        )
    writer.close()
    report.ranks.append(item.rank)
    _count(manifest, report)
    if item.importer.NAME not in report.formats:
        report.formats.append(item.importer.NAME)


def _count(manifest: Manifest, report: ImportReport) -> None:
    """Add what a finished rank's manifest says."""
    report.events += sum(part.rows for part in manifest.parts if part.table == "events")
    quarantined = sum(part.rows for part in manifest.parts if part.table == "quarantine")
    report.lost += max(len(manifest.losses), quarantined)
    report.repaired += sum(int(repair.get("count", 1)) for repair in manifest.repairs)
    report.rows += manifest.counts.get("source_total", manifest.counts.get("read", 0))


def _join(item: _Item, writer: RunWriter, report: ImportReport) -> None:
    for guest in item.companions:
        try:
            guest.importer.join(guest.source, writer)
        except InputError as error:
            report.skipped.append((_shown(guest.source), error.message))
            continue
        if guest.importer.NAME not in report.formats:
            report.formats.append(guest.importer.NAME)


def _forget(building: Location, rank: int) -> None:
    """Remove the parts of a rank that was given up."""
    if building.is_local:
        with contextlib.suppress(OSError):
            for table in os.listdir(building.root):
                shutil.rmtree(os.path.join(building.root, table, f"rank={rank}"), ignore_errors=True)


def _shown(source: Source) -> str:
    return source.path if source.member is None else f"{source.path}:{source.member}"


def cached_run(
    source: str | os.PathLike[str],
    *,
    cache_dir: str | None = None,
    progress: Progress | None = None,
    options: ImportOptions = DEFAULTS,
) -> str:
    """The run of a trace or a directory of traces, imported to the cache unless its content is there already.

    `cache_dir` is another folder for the cache than the user's. Raises InputError as `import_trace` does.
    """
    from explorer.collectors.run_cache import RunCache

    return RunCache(cache_dir).run_of(os.fspath(source), progress, options)
