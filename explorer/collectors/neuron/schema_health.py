"""Says how a profile's tables differ from the reference: other version, unknown or renamed columns, damaged files."""

from __future__ import annotations

from explorer.collectors.neuron.tables import ProfileTables
from explorer.model.neuron_schema import SCHEMA_OF_REFERENCE, official_tables
from explorer.store.writer import RunWriter

_REFERENCE_MAJOR = int(SCHEMA_OF_REFERENCE.split(".")[0])
_OWN_TABLES = {"EventOffsets"}


def report_schema(tables: ProfileTables, writer: RunWriter) -> None:
    """Add health rows and losses for one profile."""
    name = tables.profile.name
    if tables.major is not None and tables.major != _REFERENCE_MAJOR:
        writer.health(
            "neuron_schema_version",
            "info",
            1,
            f"Profile {name} has schema {tables.version}; it was read through the names of {SCHEMA_OF_REFERENCE}.",
        )
    unknown_tables = sorted(set(tables.sources) - set(official_tables()) - _OWN_TABLES)
    if unknown_tables:
        writer.health(
            "neuron_unknown_tables",
            "info",
            len(unknown_tables),
            f"Profile {name} has tables the reference does not know, kept as they are: {', '.join(unknown_tables)}.",
        )
    for source in tables.sources.values():
        for path, reason in source.unreadable:
            writer.manifest.losses.append({"where": path, "reason": reason, "count": None})
            writer.health(
                "lost_rows",
                "warning",
                0,
                f"{path} could not be read: {reason}.",
                "Process or copy the profile again; everything readable was kept.",
            )
        if source.name not in official_tables():
            continue
        if source.extra_columns:
            writer.health(
                "neuron_unknown_columns",
                "info",
                len(source.extra_columns),
                f"Table {source.name} of profile {name} has further columns, kept as they are: {', '.join(source.extra_columns)}.",
            )
        if source.renamed:
            listed = ", ".join(f"{found} as {official}" for official, found in source.renamed.items())
            writer.health(
                "neuron_renamed_columns",
                "info",
                len(source.renamed),
                f"Table {source.name} of profile {name}: read {listed}.",
            )
