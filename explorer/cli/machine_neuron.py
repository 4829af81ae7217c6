"""What `doctor` says about Neuron: TorchNeuron's profiler, AWS's program, debug variables and what their lack costs."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class NeuronFacts:
    """`relevant` is False on a machine without any trace of Neuron: then nothing is said."""

    relevant: bool
    found: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


def neuron_facts(environment: Mapping[str, str] | None = None, devices: str = "/dev") -> NeuronFacts:
    """Look for everything a capture with device_profile=True needs. Imports no torch and starts nothing."""
    from explorer.collectors.neuron.aws_tool import USUAL_PLACE, VARIABLE, find_aws_explorer
    from explorer.collectors.neuron.capture import unset_debug_variables

    known = os.environ if environment is None else environment
    nodes = sorted(Path(devices).glob("neuron[0-9]*"))
    profiler = _has_profiler()
    package = importlib.util.find_spec("torch_neuronx") is not None
    program = find_aws_explorer()
    if not (nodes or package or program):
        return NeuronFacts(False)
    found = [f"{len(nodes)} devices"] if nodes else []
    missing = [] if nodes else ["no /dev/neuron* (the driver, aws-neuronx-dkms, or access to the devices)"]
    if profiler:
        found.append("torch_neuronx.profiling")
    else:
        missing.append(
            "torch_neuronx without its profiling module (SDK 2.31 or later has it)"
            if package
            else "torch_neuronx (device profiles of PyTorch)"
        )
    if program:
        found.append(f"AWS's neuron-explorer {program}")
    else:
        missing.append(
            f"AWS's neuron-explorer (looked for in ${VARIABLE}, {USUAL_PLACE} and PATH): raw traces stay unread"
        )
    if known.get("NEURON_RT_INSPECT_ENABLE", "0") not in ("", "0"):
        missing.append("NEURON_RT_INSPECT_ENABLE is set and excludes torch's own capture: unset it")
    for name, cost in unset_debug_variables(known).items():
        missing.append(f"{name}=1 when compiling (else no {cost})")
    return NeuronFacts(True, tuple(found), tuple(missing))


def _has_profiler() -> bool:
    try:
        spec = importlib.util.find_spec("torch_neuronx")
    except (ImportError, ValueError):
        return False
    folders = list(spec.submodule_search_locations or []) if spec else []
    return any(
        os.path.exists(os.path.join(folder, name))
        for folder in folders
        for name in ("profiling", "profiling.py")
    )
