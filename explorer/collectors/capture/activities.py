"""Which torch.profiler activities to ask for: what this machine has, nothing else."""

from __future__ import annotations

from typing import Any


def accelerator_type() -> str | None:
    """cuda, xpu, mtia, the name PrivateUse1 was renamed to, or None on a machine with only a CPU."""
    import torch

    accelerator = getattr(torch, "accelerator", None)
    try:
        if accelerator is not None and accelerator.is_available():
            return str(accelerator.current_accelerator().type)
    except Exception:
        # A backend registered without its device module raises here; it may still profile through PrivateUse1.
        pass
    if torch.cuda.is_available():
        return "cuda"
    return None


def choose_activities(wanted: Any = None) -> list[Any]:
    """CPU and the activity of the present accelerator (PrivateUse1 for a renamed backend); `wanted` where given."""
    from torch.profiler import ProfilerActivity, supported_activities

    if wanted is not None:
        return list(wanted)
    supported = set(supported_activities())
    chosen = [ProfilerActivity.CPU]
    by_type = {"cuda": "CUDA", "xpu": "XPU", "mtia": "MTIA", "hpu": "HPU"}
    device = accelerator_type()
    if device is not None:
        activity = getattr(ProfilerActivity, by_type.get(device, "PrivateUse1"), None)
        if activity is not None and (activity in supported or activity == ProfilerActivity.PrivateUse1):
            chosen.append(activity)
    elif private_backend_name() != "privateuseone":
        chosen.append(ProfilerActivity.PrivateUse1)
    return chosen


def private_backend_name() -> str:
    """What PrivateUse1 is called in this process; 'privateuseone' where nobody renamed it."""
    import torch

    try:
        return str(torch._C._get_privateuse1_backend_name())
    except Exception:
        return "privateuseone"
