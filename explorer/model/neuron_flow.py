"""How table Flow of a Neuron profile spells the tables that its dependencies join."""

from __future__ import annotations

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
