"""How a forked child of a recorded process leaves.

Once torch's profiler has run, destructors of its native library wait for threads of the profiler. `fork` copies no threads,
so a child that ends as usual would wait for ever. It skips native destructors instead. Everything of Python (handlers of
`atexit`, buffers, the exit code) and native exit handlers that the child itself registered are done by then.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable


def prepare_child_exit() -> Callable[[], None]:
    """What to call in a forked child, right after the fork. Does nothing where the C library cannot do it (not glibc).

    Everything is looked up here, in the parent: loading a library after a fork may wait for a lock that nobody holds.
    """
    if not sys.platform.startswith("linux"):
        return _nothing
    try:
        library = ctypes.CDLL(None)
        register, leave = library.on_exit, ctypes.cast(library._exit, ctypes.c_void_p)
        register_plain, flush = (
            library.__getattr__("__cxa_atexit"),
            ctypes.cast(library.fflush, ctypes.c_void_p),
        )
    except (OSError, AttributeError):
        return _nothing

    def in_child() -> None:
        # The last registered is called first: fflush(NULL), then _exit(code of the process).
        register(leave, None)
        register_plain(flush, None, None)

    return in_child


def _nothing() -> None:
    pass
