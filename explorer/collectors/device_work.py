"""What kind of device work a kernel's name stands for."""

from __future__ import annotations

import re
from functools import lru_cache

_COLLECTIVE = re.compile(
    r"(?:^|[^a-z])(?:nccl|rccl|hccl|mccl)|ncclKernel|ncclDevKernel|^oneccl|^aicpu_hccl", re.IGNORECASE
)
_COPY = re.compile(r"^(?:hip)?memcpy|^copybuffer|^__amd_rocclr_copy|^sdma|^memory[_ ]?copy", re.IGNORECASE)
_FILL = re.compile(r"^(?:hip)?memset|^fillbuffer|^__amd_rocclr_fill", re.IGNORECASE)
_OPERATIONS = (
    ("reduce_scatter", re.compile(r"reduce_?scatter", re.IGNORECASE)),
    ("all_reduce", re.compile(r"all_?reduce", re.IGNORECASE)),
    ("all_gather", re.compile(r"all_?gather", re.IGNORECASE)),
    ("all_to_all", re.compile(r"all_?to_?all", re.IGNORECASE)),
    ("broadcast", re.compile(r"broadcast|bcast", re.IGNORECASE)),
    ("reduce", re.compile(r"reduce", re.IGNORECASE)),
    ("gather", re.compile(r"gather", re.IGNORECASE)),
    ("scatter", re.compile(r"scatter", re.IGNORECASE)),
    ("send_recv", re.compile(r"send_?recv", re.IGNORECASE)),
    ("send", re.compile(r"send", re.IGNORECASE)),
    ("recv", re.compile(r"recv|receive", re.IGNORECASE)),
    ("barrier", re.compile(r"barrier", re.IGNORECASE)),
)


@lru_cache(maxsize=65_536)
def work_category(name: str) -> str:
    """kernel, collective, copy or fill, by a device event's name."""
    if _COLLECTIVE.search(name):
        return "collective"
    if _COPY.search(name):
        return "copy"
    return "fill" if _FILL.search(name) else "kernel"


@lru_cache(maxsize=65_536)
def collective_operation(name: str) -> str:
    """all_reduce, all_gather ... by a collective's name; 'other' where it does not say."""
    return next((operation for operation, pattern in _OPERATIONS if pattern.search(name)), "other")


_WAITS = re.compile(
    r"^(?:cuda|cu|hip|acl(?:rt)?)\w*(?:Synchronize|_sync)|^cu(?:Ctx|Stream|Event)Synchronize|^hsa_signal_wait",
    re.IGNORECASE,
)


@lru_cache(maxsize=65_536)
def call_category(name: str) -> str:
    """sync for a runtime call that waits for the device, else runtime."""
    return "sync" if _WAITS.search(name) else "runtime"
