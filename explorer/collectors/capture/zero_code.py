"""Recording a program that knows nothing of it: wait for `import torch`, record until the interpreter ends."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import sys
import threading
from types import FrameType
from typing import Any

from explorer.collectors.capture.import_watch import ImportWatch

RECORD = "NEURON_EXPLORER_RECORD"
"""Environment variable with the JSON of the options: directory and keyword arguments of CaptureSettings."""

RECORDING = "NEURON_EXPLORER_RECORDING"
"""Environment variable that names one call of `record`; the runs its processes write say it (`attributes.recording`)."""

HOME = "NEURON_EXPLORER_HOME"
"""Environment variable with the folder that holds the package `explorer`."""

_session: Any = None


def arm() -> None:
    """Begin recording when this process imports torch."""
    ImportWatch("torch", lambda module: begin(_program_frame())).start()


def begin(frame: FrameType | None) -> None:
    """Start the capture of this process; a failure is said and the program goes on."""
    global _session
    if _session is not None:
        return
    if threading.current_thread() is not threading.main_thread():
        from explorer.collectors.capture.main_thread_call import MainThreadCall

        waiting = MainThreadCall(begin)
        waiting.after(0.0)
        _waiting.append(waiting)
        return
    try:
        from explorer.collectors.capture import guard
        from explorer.collectors.capture.kineto_window import quiet
        from explorer.collectors.capture.session import Session
        from explorer.collectors.capture.settings import CaptureSettings

        quiet()
        options = json.loads(os.environ[RECORD])
        options["user_code"] = tuple(options.get("user_code", ()))
        options["library_code"] = tuple(options.get("library_code", ()))
        session = Session(CaptureSettings(lazy=True, **options))
        if guard.acquire(session) is not None:
            return
        _session = session
        atexit.register(end)
        session.start(frame)
    except Exception as error:
        print(f"neuron-explorer: recording could not start: {type(error).__name__}: {error}", file=sys.stderr)


_waiting: list[Any] = []


def end() -> None:
    """Finish the run; registered with atexit."""
    if _session is None:
        return
    interrupted = _ended_by_interrupt()
    try:
        _session.stop()
    except Exception as error:
        print(f"neuron-explorer: the run is incomplete: {type(error).__name__}: {error}", file=sys.stderr)
    except KeyboardInterrupt:
        print("neuron-explorer: the run is incomplete: it was interrupted", file=sys.stderr)
    if interrupted:
        # The interpreter notes whether the text it ran last ended by Ctrl-C, and then dies of SIGINT. Writing the run
        # has run text since (imports make classes that way).
        with contextlib.suppress(KeyboardInterrupt):
            exec("raise KeyboardInterrupt")


def _ended_by_interrupt() -> bool:
    """Whether the program ended by a KeyboardInterrupt that nobody caught."""
    if getattr(sys, "last_type", None) is not KeyboardInterrupt:
        return False
    begin = getattr(sys, "last_traceback", None)
    return begin is not None and begin.tb_frame.f_back is None


def _program_frame() -> FrameType | None:
    """The innermost frame that is neither ours nor the import system's."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = str(frame.f_globals.get("__name__", ""))
        if not name.startswith(("explorer.", "importlib")):
            return frame
        frame = frame.f_back
    return None
