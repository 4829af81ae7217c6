"""From the profiler's activity types and names to the categories of the run."""

from __future__ import annotations

DEVICE_KINDS = frozenset(
    [
        "kernel",
        "concurrent_kernel",
        "gpu_memcpy",
        "gpu_memset",
        "gpu_user_annotation",
        "cuda_sync",
        "mtia_workloadd",
        "collective_comm",
    ]
)
"""Activity types whose device_id and resource_id are a device and a stream, not a process and a thread."""

_BY_KIND = {
    "cpu_op": "op",
    "user_annotation": "annotation",
    "gpu_user_annotation": "annotation",
    "python_function": "python",
    "kernel": "kernel",
    "concurrent_kernel": "kernel",
    "gpu_memcpy": "copy",
    "gpu_memset": "fill",
    "cuda_sync": "sync",
    "collective_comm": "collective",
    "overhead": "overhead",
    "mtia_workloadd": "kernel",
}

_WAITS = ("synchronize", "eventquery", "streamwait", "waitevent")


def category(kind: str, name: str) -> str:
    """Category of a row. Runtime calls that wait are 'sync'; library kernels that communicate are 'collective'."""
    found = _BY_KIND.get(kind)
    if found == "annotation":
        if name.startswith("enumerate(DataLoader)"):
            return "data"
        if name.startswith("ProfilerStep#"):
            return "step"
        if name.startswith(("gloo:", "nccl:", "mpi:", "hccl:", "xccl:")):
            return "collective"
        return "annotation"
    if found == "kernel":
        lowered = name.lower()
        return (
            "collective" if lowered.startswith(("nccldevkernel", "ncclkernel", "rccl", "hccl")) else "kernel"
        )
    if found is not None:
        return found
    if kind.endswith(("_runtime", "_driver")):
        lowered = name.lower()
        return "sync" if any(word in lowered for word in _WAITS) else "runtime"
    return "other"
