"""What this machine's CPU can do, measured: matrix products per dtype and a large copy, about a second in all."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from explorer.model import cpu_peak_cache
from explorer.model.errors import MissingExtra

_SIZE = 1024
_COPY_BYTES = 256 << 20
_SECONDS_EACH = 0.2


def measure() -> dict[str, Any]:
    """{'processor', 'cores', 'flops': {dtype: per second}, 'memory_bandwidth'} with all threads torch would use; kept for
    later roofs. Raises MissingExtra without torch."""
    try:
        import torch
    except ImportError:
        raise MissingExtra("torch", "capture", "Measuring the CPU") from None
    from explorer.collectors.capture.host_info import host_info

    info = host_info()
    processor, cores = info["processor"] or info["machine"], int(info["usable_cpus"])
    flops: dict[str, float] = {}
    for name in ("float32", "bfloat16", "float64"):
        left = torch.randn(_SIZE, _SIZE).to(getattr(torch, name))
        right = torch.randn(_SIZE, _SIZE).to(getattr(torch, name))
        out = torch.empty_like(left)

        def product(left: Any = left, right: Any = right, out: Any = out) -> None:
            torch.mm(left, right, out=out)

        flops[name] = 2 * _SIZE**3 / _fastest(product)
    flops["vector"] = flops["float32"]
    source = torch.zeros(_COPY_BYTES, dtype=torch.uint8)
    target = torch.empty_like(source)
    bandwidth = 2 * _COPY_BYTES / _fastest(lambda: target.copy_(source))
    peak = {"flops": flops, "memory_bandwidth": bandwidth}
    cpu_peak_cache.write(processor, cores, peak)
    return {"processor": processor, "cores": cores, **peak}


def _fastest(run: Callable[[], object]) -> float:
    """Seconds of the fastest of many runs; the first ones only warm up."""
    run()
    best, end = float("inf"), time.perf_counter() + _SECONDS_EACH
    while time.perf_counter() < end:
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return best
