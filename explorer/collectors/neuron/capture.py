"""Capture on a Trainium or Inferentia machine: TorchNeuron's own profiler beside ours, one session, joined afterwards.

TorchNeuron writes device data to files only (nothing of it appears in prof.events()): while the session runs we record ops
and lines as everywhere, then AWS's program makes Parquet of its files, and the profiles are imported into the same rank,
framework events matched to ours. API facts: public TorchNeuron profiling guide (NeuronConfig, ProfileMode, NeuronProfiler).
"""

from __future__ import annotations

import importlib
import importlib.util
import os
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from explorer.collectors.neuron.aws_tool import find_aws_explorer, process
from explorer.collectors.neuron.layout import find_artefacts
from explorer.store.writer import RunWriter

MODULE = "torch_neuronx.profiling"
FOLDER = "neuron-artefacts"
DEBUG_VARIABLES = {
    "XLA_IR_DEBUG": "layers and module paths",
    "XLA_HLO_DEBUG": "Python stack frames",
    "NEURON_FRAMEWORK_DEBUG": "Python stack frames of framework code",
    "NKI_DEBUG_INFO": "source lines of NKI kernels",
}
"""Compile-time variables and what a profile lacks without them (public environment variable reference)."""

MODES = ("DEVICE", "RUNTIME", "CPU_UTIL", "HOST_MEMORY")


def neuron_profiling() -> ModuleType | None:
    """TorchNeuron's profiling module; None where it is not installed or cannot be imported."""
    try:
        if importlib.util.find_spec(MODULE) is None:
            return None
        return importlib.import_module(MODULE)
    except Exception:
        # A broken installation must not break the program; doctor explains it.
        return None


def unset_debug_variables(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """Debug variables that are not set, with what a profile lacks for it."""
    known = os.environ if environment is None else environment
    return {
        name: cost
        for name, cost in DEBUG_VARIABLES.items()
        if known.get(name, "0") in ("", "0", "false", "False")
    }


class NeuronCapture:
    """The device's side of one capture.

    Args:
        module: TorchNeuron's profiling module (`neuron_profiling()`).
        run_directory, rank: raw files go to `<run>/neuron-artefacts/rank-<r>`.
    """

    def __init__(self, module: ModuleType, run_directory: str, rank: int) -> None:
        self.directory = os.path.join(run_directory, FOLDER, f"rank-{rank}")
        os.makedirs(self.directory, exist_ok=True)
        modes = [getattr(module.ProfileMode, name) for name in MODES if hasattr(module.ProfileMode, name)]
        self.config = module.NeuronConfig(modes=modes, profile_output_dir=self.directory)
        self._profiler = module.NeuronProfiler(self.config)
        self.conflict = os.environ.get("NEURON_RT_INSPECT_ENABLE", "0") not in ("", "0")

    def profiler_arguments(self) -> dict[str, Any]:
        """What torch.profiler.profile needs on this machine: both activities are mandatory."""
        from torch.profiler import ProfilerActivity

        return {
            "activities": [ProfilerActivity.CPU, ProfilerActivity.PrivateUse1],
            "experimental_config": self.config,
            "on_trace_ready": self._profiler.export_trace,
        }

    def synchronize(self) -> None:
        """Let the device finish: executions still under way at the end of the session would be lost."""
        import torch

        device = getattr(torch, "neuron", None)
        if device is not None and hasattr(device, "synchronize"):
            device.synchronize()

    def finish(self, writer: RunWriter, *, first_event: int, first_track: int, project_root: str = "") -> int:
        """Process the raw files and import them into the rank that `writer` holds. Returns the number of events.

        Never raises for what the device's tools do: the run's health says what is missing and how to make up for it.
        """
        found = find_artefacts(self.directory)
        if self.conflict:
            writer.health(
                "neuron_inspect_conflict",
                "warning",
                1,
                "NEURON_RT_INSPECT_ENABLE was set: only one of the runtime's and torch's captures can subscribe.",
                "Unset NEURON_RT_INSPECT_ENABLE and record again.",
            )
        for kind, message, remedy in found.raw.faults():
            writer.health(kind, "warning", 1, message, remedy)
        if missing := unset_debug_variables():
            listed = ", ".join(f"{name} ({cost})" for name, cost in missing.items())
            writer.health(
                "neuron_debug_unset",
                "info",
                len(missing),
                f"Compile-time debug variables were not set: {listed}.",
                "Set them to 1, compile again and record again.",
                "lines",
            )
        if not found.profiles:
            if not found.raw:
                writer.health(
                    "neuron_no_artefacts",
                    "warning",
                    1,
                    f"The device profiler left nothing in {self.directory}.",
                    "Run at least three iterations before the profiled ones and call torch.neuron.synchronize() before the end.",
                    "engines",
                )
                return 0
            if not self._process(writer):
                return 0
        return self._import(writer, first_event, first_track, project_root)

    def _process(self, writer: RunWriter) -> bool:
        output = os.path.join(self.directory, "parquet")
        program = find_aws_explorer()
        command = f"view -d {self.directory} --ingest-only --display-name rank --data-path {output}"
        if program is None:
            writer.health(
                "neuron_tool_missing",
                "warning",
                1,
                "AWS's neuron-explorer, which alone reads raw device traces, was not found on this machine.",
                f"Run /opt/aws/neuron/bin/neuron-explorer {command}, then import {output}.",
                "engines",
            )
            return False
        done = process(program, self.directory, output, "rank")
        if not done.ok:
            writer.health(
                "neuron_processing_failed",
                "warning",
                1,
                f"AWS's neuron-explorer could not process the device traces: {done.message}.",
                f"See {output}/processing.log; repeat with: {' '.join(done.command)}",
                "engines",
            )
        return done.ok

    def _import(self, writer: RunWriter, first_event: int, first_track: int, project_root: str) -> int:
        from explorer.collectors.neuron.host_match import own_events
        from explorer.collectors.neuron.rank_import import RankImport
        from explorer.collectors.neuron.ranks import merged_plan
        from explorer.collectors.neuron.session_import import open_profile

        connections: list[Any] = []
        try:
            profiles = [
                open_profile(each, connections, None) for each in find_artefacts(self.directory).profiles
            ]
            if not profiles:
                writer.health(
                    "neuron_no_profile",
                    "warning",
                    1,
                    "AWS's neuron-explorer wrote no Parquet profile.",
                    None,
                    "engines",
                )
                return 0
            importing = RankImport(
                merged_plan(profiles, writer.rank),
                writer,
                project_root,
                first_event=first_event,
                first_track=first_track,
                own=own_events(writer),
            )
            return importing.run()
        except Exception as error:
            writer.health(
                "neuron_import_failed",
                "warning",
                1,
                f"The device profile could not be imported: {type(error).__name__}: {error}.",
                f"Import {self.directory} by itself and report this.",
                "engines",
            )
            return 0
        finally:
            for connection in connections:
                connection.close()
