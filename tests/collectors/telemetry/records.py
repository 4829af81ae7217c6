"""neuron-monitor records in the documented form, with made-up values."""

from __future__ import annotations

from typing import Any


def runtime(
    core: int, utilization: float, *, flops_name: str = "effective_flops", error: str = ""
) -> dict[str, Any]:
    """One runtime that uses one core."""
    return {
        "pid": 1000 + core,
        "neuron_runtime_tag": "train",
        "error": "",
        "report": {
            "execution_stats": {
                "period": 2.0,
                "error_summary": {
                    "generic": 0,
                    "numerical": core,
                    "transient": 0,
                    "model": 0,
                    "runtime": 0,
                    "hardware": 0,
                },
                "execution_summary": {"completed": 10, "completed_with_err": 0, "timed_out": 1},
                "latency_stats": {
                    "total_latency": {"p0": 0.001, "p50": 0.01 * (core + 1), "p99": 0.02, "p100": 0.05},
                    "device_latency": None,
                },
                "error": "",
            },
            "memory_used": {
                "period": 2.0,
                "neuron_runtime_used_bytes": {
                    "host": 100,
                    "neuron_device": 2000,
                    "usage_breakdown": {
                        "host": {"application_memory": 60, "constants": 0, "dma_buffers": 40, "tensors": 0},
                        "neuroncore_memory_usage": {
                            str(core): {
                                "constants": 500,
                                "model_code": 300,
                                "model_shared_scratchpad": 0,
                                "runtime_memory": 200,
                                "tensors": 1000,
                            }
                        },
                    },
                },
                "loaded_models": [],
                "error": error,
            },
            "neuron_runtime_vcpu_usage": {
                "period": 2.0,
                "vcpu_usage": {"user": 1.5, "system": 0.5},
                "error": "",
            },
            "neuroncore_counters": {
                "period": 2.0,
                "neuroncores_in_use": {
                    str(core): {"neuroncore_utilization": utilization, flops_name: 7_000_000_000}
                },
                "error": "",
            },
        },
    }


def record(*runtimes: dict[str, Any]) -> dict[str, Any]:
    """One record with system sections, one of them failing as in containers."""
    return {
        "neuron_runtime_data": list(runtimes),
        "system_data": {
            "memory_info": {"period": 2.0, "memory_total_bytes": 1000, "memory_used_bytes": 400, "error": ""},
            "vcpu_usage": {"period": 2.0, "average_usage": {}, "error": "unsupported in containers"},
            "neuron_hw_counters": {
                "period": 2.0,
                "neuron_devices": [
                    {
                        "neuron_device_index": 0,
                        "mem_ecc_corrected": 3,
                        "mem_ecc_uncorrected": 0,
                        "sram_ecc_uncorrected": 0,
                    }
                ],
                "error": "",
            },
        },
        "instance_info": {"instance_name": "secret", "instance_id": "i-secret", "error": ""},
        "neuron_hardware_info": {"neuron_device_count": 1, "neuroncore_per_device_count": 2, "error": ""},
    }
