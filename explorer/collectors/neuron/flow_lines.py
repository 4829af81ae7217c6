"""Lines known through dependencies."""

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
