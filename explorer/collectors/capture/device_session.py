"""The device's own profiler beside a capture, where one was asked for: one session, so one window."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from explorer.collectors.capture.window_plan import Decision, WindowPlan
from explorer.collectors.neuron.capture import NeuronCapture, neuron_profiling
from explorer.store.writer import RunWriter


class OneWindow(WindowPlan):
    """A plan that never cuts by itself: a device profiler records one session. A schedule may still end it."""

    def __init__(self, max_events: int, schedule: Callable[[int], Any] | None = None) -> None:
        super().__init__(max_events, max_events, schedule)

    def step_ended(self, step: int) -> Decision:
        """After a recorded step: only a schedule ends the session."""
        return super().step_ended(step) if self.schedule is not None else "go_on"

    def window_closed(self, events: int) -> None:
        """The session was the only one."""
        super().window_closed(events)
        self.spent = True


def open_device_session(writer: RunWriter, rank: int) -> NeuronCapture | None:
    """TorchNeuron's profiler, ready for a session; None, with the reason in the run's health, where there is none."""
    module = neuron_profiling()
    if module is None:
        writer.health(
            "neuron_module_missing",
            "warning",
            1,
            "device_profile was asked for, but torch_neuronx.profiling cannot be imported here: only the host was recorded.",
            "Use a machine and environment with TorchNeuron; neuron-explorer doctor says what is missing.",
            "engines",
        )
        return None
    try:
        return NeuronCapture(module, writer.directory, rank)
    except Exception as error:
        writer.health(
            "neuron_profiler_failed",
            "warning",
            1,
            f"TorchNeuron's profiler could not be set up: {type(error).__name__}: {error}.",
            None,
            "engines",
        )
        return None
