"""A device profile's timeline as events: instructions, DMA blocks, collectives, barriers, throttling, errors."""

from __future__ import annotations

from explorer.collectors.neuron.device_context import DeviceContext
from explorer.collectors.neuron.flow_edges import write_edges
from explorer.collectors.neuron.instruction_events import write_instructions
from explorer.collectors.neuron.single_events import write_single_events
from explorer.collectors.neuron.transfer_events import write_transfers


class DeviceProfile(DeviceContext):
    """Maps one device profile into a run."""

    def write(self) -> int:
        """Write everything; returns the next free event number."""
        write_instructions(self)
        write_transfers(self)
        write_single_events(self)
        write_edges(self)
        return self.next_id
