"""Utilisation formulas of Neuron profiles, as the public schema reference and the public profiling skills define them.

All take bytes, flop, seconds, bytes/s and GHz; all shares are fractions of 1. None where a divisor is zero or unknown.
"""

from __future__ import annotations


def _divided(top: float | None, bottom: float | None) -> float | None:
    if top is None or not bottom:
        return None
    return top / bottom


def peak_flops(rows: float, columns: float, clock_ghz: float) -> float:
    """BF16 peak of one Tensor engine: rows x columns multiply-accumulates (2 flop each) a cycle."""
    return rows * columns * 2 * clock_ghz * 1e9


def ridge(peak_flops_per_s: float | None, bandwidth: float | None) -> float | None:
    """Arithmetic intensity (flop/byte) above which compute, below which HBM bandwidth is the limit."""
    return _divided(peak_flops_per_s, bandwidth)


def arithmetic_intensity(
    hardware_flops: float, transpose_flops: float, read_bytes: float, write_bytes: float
) -> float | None:
    """Matrix flops without transposes per byte moved to or from HBM (Summary.mm_arithmetic_intensity)."""
    return _divided(hardware_flops - transpose_flops, read_bytes + write_bytes)


def flops_utilization(flops: float, peak_flops_per_s: float | None, seconds: float) -> float | None:
    """MFU with model flops or hardware flops without transposes; HFU with all hardware flops."""
    return _divided(flops, (peak_flops_per_s or 0) * seconds)


def bandwidth_utilization(
    read_bytes: float, write_bytes: float, bandwidth: float | None, seconds: float
) -> float | None:
    """MBU: bytes to and from HBM over what one stack could move in the time (Summary.mbu_estimated_percent)."""
    return _divided(read_bytes + write_bytes, (bandwidth or 0) * seconds)


def max_achievable_utilization(intensity: float | None, ridge_point: float | None) -> float | None:
    """MFU that HBM bandwidth alone would allow at this intensity, at most 1 (Summary.mfu_max_achievable_*)."""
    share = _divided(intensity, ridge_point)
    return None if share is None else min(1.0, share)


def throttle_limit(k: float, n: float) -> float | None:
    """Part of the cycles that a throttle setting lets through, K of N (glossary: throttle share = 1 - K/N)."""
    return _divided(k, n)
