"""From the source's category and name to ours, for every vendor and year.

Source categories: libkineto's ActivityType names (libkineto/src/ActivityType.cpp), the capitalised ones of 2021, and
Ascend's trace_view, where the process name says what an event is.
"""

from __future__ import annotations

import re

HOST_CATEGORIES = {
    "cpu_op": "op",
    "operator": "op",
    "user_annotation": "annotation",
    "python_function": "python",
    "cuda_runtime": "runtime",
    "runtime": "runtime",
    "cuda_driver": "runtime",
    "driver": "runtime",
    "hip_runtime": "runtime",
    "xpu_runtime": "runtime",
    "xpu_driver": "runtime",
    "mtia_runtime": "runtime",
    "glow_runtime": "runtime",
    "privateuse1_runtime": "runtime",
    "privateuse1_driver": "runtime",
    "enqueue": "runtime",
    "dequeue": "runtime",
    "overhead": "overhead",
    "trace": "other",
    "fee": "python",
}
DEVICE_CATEGORIES = {
    "kernel": "kernel",
    "gpu_kernel": "kernel",
    "concurrent_kernel": "kernel",
    "memcpy": "copy",
    "gpu_memcpy": "copy",
    "memset": "fill",
    "gpu_memset": "fill",
    "gpu_user_annotation": "annotation",
    "cuda_sync": "sync",
    "xpu_sync": "sync",
    "cuda_event": "sync",
    "mtia_ccp_events": "kernel",
    "mtia_insight": "other",
    "hpu_op": "kernel",
    "collective_comm": "collective",
    "cuda_profiler_range": "annotation",
}
_RUNTIMES = {name for name, ours in HOST_CATEGORIES.items() if ours == "runtime"}

STEP_NAME = re.compile(r"ProfilerStep\s?#(\d+)")
_WAIT = re.compile(
    r"(?:cuda|hip|cu|ze|sycl|aclrt|ur)\w*(?:Synchronize|EventSynchronize|HostSynchronize|EventWait\b)"
    r"|\w*(?:Stream|Device|Event|Ctx|Queue)(?:_)?Synchronize\w*|AscendCL@aclrtSynchronize\w*"
)
_COLLECTIVE_KERNEL = re.compile(
    r"(?i)(?:^|\b|_)(?:nccl|rccl|hccl|oneccl|mccl|msccl)|ncclDev|ncclKernel|^hcom_|cross_device_reduce|nvshmem|deep_ep::"
)
_COPY = re.compile(
    r"(?i)^(?:__amd_rocclr_copy|memcpy|dma\b|dma_|sdma|.*memcpy_async)|\bdma_(?:read|write|copy)"
)
_FILL = re.compile(r"(?i)^(?:__amd_rocclr_fill|memset)")
_DEVICE_WAIT = re.compile(
    r"(?i)^(?:event_?(?:wait|record|reset)|notify[ _](?:wait|record)|wait[ _]value|write[ _]value|"
    r"(?:stream )?wait(?: event)?|barrier\b|.*_wait_event|semaphore)"
)
_DATA = re.compile(r"^enumerate\(DataLoader\)|_(?:Single|Multi)ProcessDataLoaderIter|DataLoader\.__next__")

ASCEND_DEVICE_PROCESSES = ("Ascend Hardware",)
ASCEND_COMMUNICATION_PROCESSES = ("HCCL", "Communication")


def classify(category: str | None, name: str, process: str | None = None) -> tuple[str, bool]:
    """Our category of an event, and whether it happened on a device.

    Args:
        category: as the source gave it, None where it gave none.
        name: of the event.
        process: name of the event's process from the metadata rows, None where unknown.
    """
    known = (category or "").lower()
    if known in DEVICE_CATEGORIES:
        return _device(DEVICE_CATEGORIES[known], name), True
    if known in HOST_CATEGORIES:
        return _host(HOST_CATEGORIES[known], name), False
    if not known and process is not None:
        if process in ASCEND_DEVICE_PROCESSES:
            return _device("kernel", name), True
        if process in ASCEND_COMMUNICATION_PROCESSES:
            return ("collective" if name.startswith("hcom_") else "other"), True
        if process == "CANN":
            return _host("runtime", name), False
        if process == "Overlap Analysis":
            return "other", False
    return "other", False


def _device(ours: str, name: str) -> str:
    if ours != "kernel":
        return ours
    if _COLLECTIVE_KERNEL.search(name):
        return "collective"
    if _COPY.search(name):
        return "copy"
    if _FILL.search(name):
        return "fill"
    if _DEVICE_WAIT.search(name):
        return "sync"
    return ours


def _host(ours: str, name: str) -> str:
    if ours == "runtime":
        return "sync" if _WAIT.search(name) else "runtime"
    if ours in ("op", "annotation"):
        if STEP_NAME.fullmatch(name):
            return "step"
        if _DATA.search(name):
            return "data"
        if name.endswith("(dynamo_timed)"):
            return "compile"
        if ours == "op" and name == "record_param_comms":
            return "collective"
    return ours


def is_runtime(category: str | None) -> bool:
    """Whether a source category holds calls that launch device work."""
    return (category or "").lower() in _RUNTIMES
