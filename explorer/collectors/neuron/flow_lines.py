"""Lines known through dependencies, and how table Flow spells the tables it joins."""

from __future__ import annotations

from explorer.collectors.neuron.lines import Line


class FlowLine(Line):
    """A line known through a dependency or through the launching op, not from the row's own debug information."""

    @property
    def attribution(self) -> str:
        return "flow"

    @property
    def precision(self) -> str | None:
        return "inferred" if len(self.sites) == 1 else "shared"


TABLE_ALIASES = {
    "Instruction": ("instruction",),
    "DmaPacketAggregated": ("dmapacketaggregated", "dma_packet_aggregated", "dma_block", "dmablock"),
    "DmaPacket": ("dmapacket", "dma_packet"),
}
"""Spellings of tables in Flow: the reference and its examples differ."""


def is_table(column: str, table: str) -> str:
    """SQL: whether a column of Flow names a table, in any of its spellings."""
    names = ", ".join(f"'{name}'" for name in TABLE_ALIASES.get(table, (table.lower(),)))
    return f"lower({column}) IN ({names})"
