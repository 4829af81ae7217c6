"""Looks for bottlenecks in a process of its own, so that the keys of this one are answered at once meanwhile.

    python -m explorer.tui.find_apart RUN

is that process. It writes pickled pairs to standard output: "asked" and how far it is, before each rule, then one of "found" and
the findings, "error" and an ExplorerError, or "broken" and the traceback of anything else. It ends with the process that started
it, whose end closes its standard input.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from explorer.tui.lane import StaleError

if TYPE_CHECKING:
    from explorer.analysis.findings import Told
    from explorer.analysis.run import Run
    from explorer.model.finding import Findings

MEMORY_LIMIT = "1GB"
"""Of each query engine of that process (there are two); beyond it they spill to disk."""
NICENESS = 5
"""Below the terminal UI, which waits for keys."""


class BrokenApartError(Exception):
    """An unexpected error in the other process; the text is its traceback."""


class FindApart:
    """Finds bottlenecks of a run by asking another process."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def __call__(self, run: Run, told: Told | None = None) -> Findings:
        """The findings. Raises what looking for them raised, StaleError after `stop`."""
        command = [sys.executable, "-m", "explorer.tui.find_apart", run.directory]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as process:
            self._process = process
            assert process.stdout is not None
            how: str = "asked"
            what: Any = None
            while how == "asked":
                try:
                    how, what = pickle.load(process.stdout)
                except (EOFError, pickle.UnpicklingError):
                    how = "stopped"
                if how == "asked" and told is not None:
                    told(*what)
        self._process = None
        if how == "stopped":
            raise StaleError
        if how == "error":
            raise what
        if how == "broken":
            raise BrokenApartError(what)
        found: Findings = what
        return found

    def stop(self, run: Run) -> None:
        """Nobody waits for the findings any more."""
        if self._process is not None:
            self._process.kill()


def main() -> None:
    """Answer, as the module says."""
    # What libraries print must not mix with the answer.
    answer = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    threading.Thread(target=_end_with_the_other, daemon=True).start()
    with suppress(OSError):
        os.nice(NICENESS)

    def send(how: str, what: Any) -> None:
        pickle.dump((how, what), answer)
        answer.flush()

    send(*_found(sys.argv[1], lambda *asked: send("asked", asked)))
    os._exit(0)


def _found(directory: str, told: Told) -> tuple[str, Any]:
    from explorer.model.errors import ExplorerError

    try:
        from explorer.analysis.findings import find
        from explorer.analysis.run import open_run
        from explorer.store.arrow_alone import keep_pandas_out

        keep_pandas_out()
        return "found", find(open_run(directory, memory_limit=MEMORY_LIMIT), told=told)
    except ExplorerError as error:
        return "error", error
    except Exception:
        import traceback

        return "broken", traceback.format_exc()


def _end_with_the_other() -> None:
    with suppress(OSError):
        while os.read(0, 1024):
            pass
    os._exit(1)


if __name__ == "__main__":
    main()
