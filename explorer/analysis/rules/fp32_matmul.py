"""Full-precision matrix products on a device whose tensor cores stand idle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from explorer.analysis.rule import Draft, NotChecked, Rule, Setting
from explorer.analysis.rule_context import RuleContext
from explorer.model.finding import Saving

# cuBLAS, cuDNN, CUTLASS: names of fp32 kernels that run on the ordinary cores. Tensor-core kernels are named by their
# instruction (s884, s1688, h1688, i8816, gmma, tensorop, wmma) or by tf32, bf16, f16.
_FULL = "(?i)(sgemm|sgemv|ffma|simt|fp32_|f32f32_f32f32|scudnn|implicit_convolve_sgemm)"
_TENSOR = "(?i)(tf32|bf16|f16|h884|s884|1688|16816|tensorop|gmma|wmma|hgemm)"


def check(context: RuleContext) -> Sequence[Draft] | NotChecked:
    devices = context.rows(
        f"SELECT DISTINCT name, vendor, attributes FROM devices WHERE rank = {context.scope.rank} AND device <> 'cpu' ORDER BY name"
    )
    kernels = f"""SELECT e.event_id, e.start_ns, e.duration_ns, e.site_id, e.name FROM events e
WHERE {context.where()} AND e.category = 'kernel' AND regexp_matches(e.name, '{_FULL}') AND NOT regexp_matches(e.name, '{_TENSOR}')"""
    evidence, row = context.evidence(
        "{kernels} matrix-product kernels per step run in full fp32 without tensor cores, {time_ns} per step.",
        f"SELECT count(*) / {context.count} AS kernels, (coalesce(sum(duration_ns), 0) / {context.count})::BIGINT AS time_ns FROM ({kernels})",
        f"SELECT event_id FROM ({kernels}) ORDER BY duration_ns DESC, event_id",
    )
    time_ns = row["time_ns"]
    if time_ns < context.setting(RULE, "fp32_share") * context.scope.mean_ns:
        return []
    old = [device["name"] for device in devices if _has_no_tensor_cores(str(device["name"] or ""))]
    if old:
        return NotChecked(RULE.name, f"{old[0]} has no tensor cores for fp32 input")
    lines = context.costliest_lines(kernels, most=5)
    saved = context.setting(RULE, "saved_share")
    expected = round(saved * time_ns)
    return [
        Draft(
            title="Full fp32 matrix products, tensor cores idle",
            line_times_ns=lines,
            saving=Saving(low=expected // 2, expected=expected, high=round(0.9 * time_ns)),
            evidence=[evidence],
            advice=_advice(devices),
            affected=f"SELECT event_id, start_ns, duration_ns FROM ({kernels})",
            remaining_share=1 - saved,
            side="device",
            confidence="medium",
            caveats=["Results change within the lower precision; check the loss."],
            key="fp32",
        )
    ]


def _advice(devices: list[dict[str, Any]]) -> str:
    names = [str(device["name"] or "") for device in devices]
    if any(part in name for name in names for part in _WITHOUT_TF32):
        return (
            "This GPU has neither TF32 nor bfloat16: train under torch.autocast('cuda', dtype=torch.float16) with a"
            " torch.amp.GradScaler."
        )
    return (
        "Allow TF32 with torch.set_float32_matmul_precision('high') (for convolutions torch.backends.cudnn.conv.fp32_precision ="
        " 'tf32'), or train under torch.autocast('cuda', dtype=torch.bfloat16). On GPUs without TF32 use autocast with float16."
    )


_WITHOUT_TF32 = ("V100", "TITAN V", "Tesla T4", "RTX 2060", "RTX 2070", "RTX 2080", "TITAN RTX", "Quadro RTX")
"""Volta and Turing: their tensor cores take float16 only (NVIDIA's architecture papers)."""


def _has_no_tensor_cores(name: str) -> bool:
    """Generations before Volta, and the GTX cards of Turing."""
    return any(
        part in name for part in ("P100", "P40", "P4 ", "GTX", "GP100", "GP102", "K80", "M60", "TITAN X")
    )


RULE = Rule(
    name="fp32_matmul",
    title="Tensor cores idle",
    specificity=3,
    needs=("kernels",),
    check=check,
    settings=(
        Setting(
            "fp32_share",
            0.05,
            "Smallest part of the step in such kernels",
            "torch.profiler's pattern matcher reports any; below 5 % it is not worth a change of precision",
        ),
        Setting(
            "saved_share",
            0.6,
            "Part of their time that tensor cores save",
            "TF32 and half precision peak 4 to 16 times higher; memory keeps real gains to 2 to 4 times",
        ),
    ),
)
