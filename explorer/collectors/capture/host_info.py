"""What the run was made on: host, versions, commit, devices, clock."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import time
from typing import Any


def host_info() -> dict[str, Any]:
    """Names and versions for the manifest."""
    import torch

    info: dict[str, Any] = {
        "hostname": platform.node(),
        "platform": platform.platform(),
        "machine": platform.machine(),
        "processor": _processor(),
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "cpu_count": os.cpu_count(),
        "usable_cpus": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "torch_threads": torch.get_num_threads(),
        "cudnn_benchmark": bool(torch.backends.cudnn.benchmark),
        "process_id": os.getpid(),
        "working_directory": os.getcwd(),
        "executable": sys.executable,
    }
    try:
        import psutil

        info["memory_bytes"] = psutil.virtual_memory().total
    except Exception:
        info["memory_bytes"] = None
    return info


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor()


def git_commit(folder: str) -> str | None:
    """Commit checked out in the folder, with '+dirty' where tracked files differ; None outside a repository."""
    try:
        run = subprocess.run(
            ["git", "-C", folder, "rev-parse", "HEAD"], capture_output=True, text=True, timeout=5, check=False
        )
        if run.returncode:
            return None
        changed = subprocess.run(
            ["git", "-C", folder, "status", "--porcelain", "--untracked-files=no"],
            capture_output=True,
            text=True,
            timeout=5,
            check=False,
        )
        return run.stdout.strip() + ("+dirty" if changed.stdout.strip() else "")
    except (OSError, subprocess.SubprocessError):
        return None


def clock_sample() -> dict[str, int]:
    """The clocks of one moment; the wall clock is read on both sides, so a pause between them shows."""
    before = time.time_ns()
    performance, monotonic = time.perf_counter_ns(), time.monotonic_ns()
    after = time.time_ns()
    return {
        "time_ns": (before + after) // 2,
        "perf_counter_ns": performance,
        "monotonic_ns": monotonic,
        "error_ns": (after - before) // 2,
    }


def device_rows() -> list[dict[str, Any]]:
    """Rows of the table `devices`: the CPU and every accelerator that torch sees."""
    import json

    import torch

    from explorer.collectors.capture.activities import accelerator_type

    info = host_info()
    rows: list[dict[str, Any]] = [
        {
            "device": "cpu",
            "name": info["processor"] or info["machine"],
            "vendor": "cpu",
            "memory_bytes": info["memory_bytes"],
            "unit_count": info["usable_cpus"],
        }
    ]
    kind = accelerator_type()
    if kind == "cuda":
        for index in range(torch.cuda.device_count()):
            properties = torch.cuda.get_device_properties(index)
            hip = getattr(torch.version, "hip", None)
            rows.append(
                {
                    "device": f"cuda:{index}",
                    "name": properties.name,
                    "vendor": "amd" if hip else "nvidia",
                    "memory_bytes": properties.total_memory,
                    "unit_count": properties.multi_processor_count,
                    "attributes": json.dumps({"capability": f"{properties.major}.{properties.minor}"}),
                }
            )
    elif kind is not None:
        count = torch.accelerator.device_count()
        vendor = {"neuron": "aws", "xpu": "intel", "npu": "huawei", "mtia": "meta"}.get(kind)
        rows.extend({"device": f"{kind}:{index}", "name": kind, "vendor": vendor} for index in range(count))
    return rows
