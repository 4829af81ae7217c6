"""Keeps torch.compile away from our own code: Dynamo neither compiles nor inlines anything that lies in this package.

Trace functions are called in the middle of a program's frames, and wrappers stand where torch's functions stood: without
this, Dynamo would compile them as if they were the program's, recompile until its limit, and break graphs at their clocks.
"""

from __future__ import annotations

from types import ModuleType

from explorer.collectors.capture.import_watch import ImportWatch

PACKAGE = "explorer"


class DynamoSkips:
    """Adds the package to Dynamo's list of skipped files, as soon as Dynamo is imported. It stays there after the capture:
    code that Dynamo has seen once is skipped for good anyway."""

    def __init__(self) -> None:
        self._watch = ImportWatch("torch._dynamo.trace_rules", self._add)

    def start(self) -> None:
        self._watch.start()

    def stop(self) -> None:
        self._watch.stop()

    def _add(self, module: ModuleType) -> None:
        if not module.check_file(__file__).skipped:
            module.add(PACKAGE)
