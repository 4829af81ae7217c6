"""neuron-explorer: find why a PyTorch program is slow, from the Python line down to the hardware engine.

Importing this package loads none of torch, pandas, duckdb or textual; each name below is loaded at first use.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["Finding", "Run", "__version__", "neuron_profile", "open_run"]

if TYPE_CHECKING:
    from explorer.analysis.run import Run, open_run
    from explorer.collectors.neuron_profile import neuron_profile
    from explorer.model.finding import Finding

_HOME = {
    "Finding": "explorer.model.finding",
    "Run": "explorer.analysis.run",
    "open_run": "explorer.analysis.run",
    "neuron_profile": "explorer.collectors.neuron_profile",
}


def __getattr__(name: str) -> Any:
    """Load a public name from its module at first use (PEP 562)."""
    if name in _HOME:
        from importlib import import_module

        value = getattr(import_module(_HOME[name]), name)
        if "IPython" in sys.modules and name in ("Run", "open_run"):
            import_module("explorer.report.notebook").install()
        return value
    raise AttributeError(f"module 'explorer' has no attribute {name!r}")
