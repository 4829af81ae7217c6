"""`neuron_profile`: record a PyTorch program into a run, as context manager or decorator."""

from __future__ import annotations

import functools
import os
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from explorer.collectors.capture.settings import CaptureSettings
from explorer.model.errors import MissingExtra

if TYPE_CHECKING:
    from explorer.collectors.capture.capture_summary import CaptureSummary

Function = TypeVar("Function", bound=Callable[..., Any])


class neuron_profile:
    """Record ops, source lines and devices of the enclosed code into a run directory.

    As context manager::

        with neuron_profile("runs/baseline") as prof:
            for batch in loader:
                train_step(batch)
                prof.step()

    or as decorator: every call of the function makes a run.

    Args:
        directory: where the run goes; `runs/<script>-<time>` where not given. A directory that already holds a finished
            run of this rank is left alone: NAME-2 is made, and `prof.directory` says so.
        activities: torch.profiler activities; chosen by what the machine has where None.
        schedule: as torch.profiler.schedule(); needs `prof.step()`.
        record_shapes: "sample" records shapes in the first window only, True always, False never.
        profile_memory: record allocations and frees.
        lines: record which source line every thread executes.
        modules: record the nn.Module path of every op.
        telemetry: sample host and device counters.
        device_profile: also run the device's own profiler (Neuron).
        sources: store the user's source text in the run.
        threads: "main" (this thread and the autograd threads) or "all". "all" and `profile_memory` exclude each other:
            the profiler then reports no memory events, so memory wins and the run says so.
        max_events: stop recording after about this many events per rank.
        rank: process rank; found from torch.distributed or the launcher where None.
        compat: keep torch.profiler's own results as well (`prof.profiler.key_averages()`); slower.
        on_run_ready: called with the run's directory when it is complete.

    Raises:
        MissingExtra: torch is not installed.
        UsageError: the directory cannot be written.

    A second capture in a process that already records one is refused with a RuntimeWarning; the program runs on and
    the first capture loses nothing.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str] | None = None,
        *,
        activities: Iterable[Any] | None = None,
        schedule: Callable[[int], Any] | None = None,
        record_shapes: bool | Literal["sample"] = "sample",
        profile_memory: bool = False,
        lines: bool = True,
        modules: bool = True,
        telemetry: bool = True,
        device_profile: bool = False,
        sources: bool = True,
        threads: Literal["main", "all"] = "main",
        max_events: int = 1_000_000,
        rank: int | None = None,
        compat: bool = False,
        on_run_ready: Callable[[str], Any] | None = None,
        user_code: Iterable[str] = (),
        library_code: Iterable[str] = (),
    ) -> None:
        self._wanted_directory = os.fspath(directory) if directory is not None else None
        self._options: dict[str, Any] = {
            "activities": activities,
            "schedule": schedule,
            "record_shapes": record_shapes,
            "profile_memory": profile_memory,
            "lines": lines,
            "modules": modules,
            "telemetry": telemetry,
            "device_profile": device_profile,
            "sources": sources,
            "threads": threads,
            "max_events": max_events,
            "rank": rank,
            "compat": compat,
            "on_run_ready": on_run_ready,
            "user_code": tuple(user_code),
            "library_code": tuple(library_code),
        }
        self._session: Any = None

    # -- what the program sees

    @property
    def directory(self) -> str | None:
        """Where the run is written; None before the capture begins and where it was refused."""
        return self._session.directory if self._session is not None else None

    @property
    def profiler(self) -> Any:
        """The torch.profiler session of the current window; None while nothing is recorded."""
        return self._session.profiler if self._session is not None else None

    def summary(self) -> CaptureSummary:
        """Steps and step time so far, for a line in the program's own log: `print(prof.summary())`."""
        from explorer.collectors.capture.capture_summary import capture_summary

        return capture_summary(self._session)

    def step(self) -> None:
        """Say that a training or inference step ends here."""
        if self._session is not None:
            self._session.step(sys._getframe(1))

    def start(self) -> neuron_profile:
        """Begin recording; `with` does it by itself."""
        self._start(sys._getframe(1))
        return self

    def stop(self) -> None:
        """End recording and finish the run; a second call does nothing."""
        session = self._session
        if session is None:
            return
        if threading.get_ident() != session.thread:
            warnings.warn(
                "neuron_profile was stopped in another thread than it was started in; torch.profiler would lose its "
                "data, so recording goes on until the starting thread stops it.",
                RuntimeWarning,
                stacklevel=2,
            )
            return
        session.stop()

    def __enter__(self) -> neuron_profile:
        self._start(sys._getframe(1))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def __call__(self, function: Function) -> Function:
        @functools.wraps(function)
        def profiled(*args: Any, **kwargs: Any) -> Any:
            again = neuron_profile(self._wanted_directory, **self._options)
            again._start(sys._getframe())
            try:
                return function(*args, **kwargs)
            finally:
                again.stop()

        return profiled  # type: ignore[return-value]

    # -- parts

    def _start(self, frame: FrameType) -> None:
        if self._session is not None and self._session.running:
            warnings.warn("this neuron_profile is already recording", RuntimeWarning, stacklevel=3)
            return
        _require_torch()
        from explorer.collectors.capture import guard
        from explorer.collectors.capture.kineto_window import quiet

        reason = guard.refusal()
        if reason is not None:
            warnings.warn(f"neuron_profile records nothing here: {reason}.", RuntimeWarning, stacklevel=3)
            return
        quiet()
        from explorer.collectors.capture.session import Session

        directory = self._wanted_directory or default_directory()
        session = Session(CaptureSettings(directory=directory, **self._options))
        reason = guard.acquire(session)
        if reason is not None:
            warnings.warn(f"neuron_profile records nothing here: {reason}.", RuntimeWarning, stacklevel=3)
            return
        self._session = session
        try:
            session.start(frame)
        except BaseException:
            guard.release(session)
            raise


def default_directory() -> str:
    """runs/<script>-<time>; equal in every rank of one local launch, since the launcher's start time is used there."""
    script = os.path.splitext(os.path.basename(sys.argv[0] if sys.argv else ""))[0] or "session"
    moment = time.time()
    if os.environ.get("RANK", "").isdigit():
        try:
            import psutil

            moment = psutil.Process(os.getppid()).create_time()
        except Exception:
            pass
    return os.path.join("runs", f"{script}-{time.strftime('%Y%m%d-%H%M%S', time.localtime(moment))}")


def _require_torch() -> None:
    try:
        import torch  # noqa: F401
    except ImportError as error:
        raise MissingExtra("torch", "capture", "Recording a program") from error
