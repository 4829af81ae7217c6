"""Importer of neuron-monitor logs: every record's values as counters."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

from explorer.collectors.options import ImportOptions
from explorer.collectors.source import Damaged, Source
from explorer.collectors.telemetry.neuron_monitor import is_monitor_log, record_readings
from explorer.collectors.telemetry.recorder import counter_columns
from explorer.collectors.telemetry.sampler import Reading
from explorer.collectors.track_table import TrackTable
from explorer.model.errors import InputError
from explorer.store.writer import RunWriter

NAME = "neuron_monitor"
DEFAULT_PERIOD_S = 5.0
"""neuron-monitor's own default; a record carries no time."""

FLUSH_READINGS = 200_000


def recognises(source: Source) -> bool:
    """Whether the first line is a neuron-monitor record."""
    return is_monitor_log(source.head)


def import_source(source: Source, writer: RunWriter, options: ImportOptions) -> None:
    """Write counters; lines that are no record go to quarantine. Raises InputError when no record can be read.

    Records carry no time of their own: they are laid one period apart so that the last one falls on the file's time of
    change, which the health rows say.
    """
    damage: list[str] = []
    lines = list(_lines(source, damage))
    tracks = TrackTable()
    period_ns = round(1e9 * _period_s(lines))
    last_ns = os.stat(source.path).st_mtime_ns
    readings: list[Reading] = []
    records = errors = bad = 0
    for place, line in enumerate(lines):
        found, failed = record_readings(line, last_ns - (len(lines) - 1 - place) * period_ns)
        if not found and not _is_record(line):
            bad += 1
            writer.quarantine(line[:100_000], "no_record")
            continue
        records += 1
        errors += failed
        readings += found
        if len(readings) >= FLUSH_READINGS:
            _write(writer, tracks, readings)
            readings = []
    if not records:
        raise InputError(
            f"{source.name} holds no neuron-monitor record.", "The first line must be a JSON record."
        )
    _write(writer, tracks, readings)
    tracks.write(writer)
    writer.manifest.counts |= {"read": records + bad, "records": records, "quarantine": bad}
    writer.health(
        "neuron_monitor_times",
        "info",
        records,
        f"neuron-monitor records carry no time: they were laid {period_ns / 1e9:g} s apart, the last at the file's time of change.",
        affects="counters",
    )
    for reason in damage:
        writer.manifest.losses.append({"where": "the file", "reason": reason})
        writer.health(
            "damaged_container", "error", 1, f"The file is damaged: {reason}. What came before was read."
        )
    if errors:
        writer.health(
            "neuron_monitor_errors",
            "warning",
            errors,
            f"{errors} sections of the records report an error of their own and hold no values.",
            "Containers hide some host values; run neuron-monitor on the host for them.",
            "counters",
        )


def _write(writer: RunWriter, tracks: TrackTable, readings: list[Reading]) -> None:
    if readings:
        writer.write(
            "counters",
            counter_columns(readings, lambda r: tracks.counter(r.label, r.device_type, r.device_index)),
        )


def _lines(source: Source, damage: list[str]) -> Iterator[str]:
    """The lines that can be read; why there are no more goes to `damage`."""
    rest = b""
    try:
        for block in source.blocks():
            *whole, rest = (rest + block).split(b"\n")
            yield from (line.decode("utf-8", "replace") for line in whole if line.strip())
    except Damaged as error:
        damage.append(str(error))
    if rest.strip():
        yield rest.decode("utf-8", "replace")


def _is_record(line: str) -> bool:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(record, dict) and "neuron_runtime_data" in record


def _period_s(lines: list[str]) -> float:
    """The period that the first record with runtimes states."""
    for line in lines[:100]:
        try:
            record = json.loads(line)
            for runtime in record["neuron_runtime_data"]:
                period = runtime["report"]["neuroncore_counters"]["period"]
                if isinstance(period, int | float) and period > 0:
                    return float(period)
        except (ValueError, KeyError, TypeError, RecursionError):
            continue
    return DEFAULT_PERIOD_S
