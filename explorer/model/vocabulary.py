"""The closed sets of words used in tables: categories, phases, attribution methods, precisions, edge kinds."""

from __future__ import annotations

CATEGORIES: dict[str, str] = {
    "op": "A framework operator on the host (aten::addmm, autograd nodes, optimizer ops)",
    "python": "A Python function call recorded by the source",
    "annotation": "A range named by the program or a library (record_function, NVTX)",
    "step": "One training or inference step",
    "data": "Fetching the next batch (DataLoader, input pipeline)",
    "compile": "Compilation: Dynamo, Inductor, XLA, neuronx-cc",
    "runtime": "A call into the device runtime or driver (launches, allocations, queries)",
    "sync": "A host call that waits for a device, or a device-side wait record",
    "kernel": "A compute kernel on a device",
    "copy": "A memory copy by or to a device",
    "fill": "A memory fill on a device",
    "collective": "A communication kernel on a device, or a communication call on the host",
    "instruction": "One instruction on a device engine",
    "dma": "A DMA transfer on a device queue",
    "semaphore": "A wait on a device semaphore",
    "gc": "A pass of Python's garbage collector",
    "io": "File, socket or pipe input and output on the host",
    "overhead": "Cost of profiling itself, as the source reported it",
    "other": "Anything else",
}

DEVICE_WORK = ("kernel", "copy", "fill", "collective", "instruction", "dma")
"""Categories that keep a device busy when they lie on a device track."""

PHASES = ("forward", "backward", "optimizer", "data", "evaluation", "prefill", "decode", "other")

ATTRIBUTIONS: dict[str, str] = {
    "traced": "The line recorder saw the line executing when the event started",
    "flow": "Through the source's correlation: device event to launch to op to line",
    "forward": "Backward op charged to the line of its forward op",
    "compiled": "From the compiler's provenance: the lines a fused kernel computes",
    "graph_replay": "From the capture of the replayed graph",
    "debug_info": "From the compiler's debug information",
    "stack": "From a Python stack stored in the source",
    "module": "Only the nn.Module is known",
    "order": "By position in a sequence, with no id to confirm it",
    "none": "No line is known",
}

PRECISIONS: dict[str, str] = {
    "exact": "The very line",
    "shared": "One event, several lines; shares in event_sites",
    "coarse": "The function, not the line",
    "inferred": "Likely, by order or by neighbours",
}

EDGE_KINDS = (
    "launch",
    "forward_backward",
    "flow",
    "stream_wait",
    "event_wait",
    "sync",
    "semaphore",
    "data",
    "collective",
)

TRACK_KINDS = ("thread", "stream", "engine", "queue", "counter")

SEVERITIES = ("info", "warning", "error")
