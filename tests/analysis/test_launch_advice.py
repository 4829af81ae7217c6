"""Advice names what the run's device and framework have; shapes that are no JSON stop no answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from explorer.analysis.launch_advice import compile_advice, graphs, is_jax
from explorer.analysis.rule_context import RuleContext
from explorer.analysis.rules.exposed_copies import _advice as copy_advice
from explorer.analysis.rules.fp32_matmul import _advice as fp32_advice
from explorer.analysis.step_scope import find_scope
from tests.analysis.run_builder import RunBuilder


def context_of(directory: Path, op: str, device_type: str | None) -> RuleContext:
    run = RunBuilder(directory)
    run.steps(2, 100)
    for number in range(2):
        run.op(op, 100 * number, 50)
    if device_type:
        stream = run.stream(device_type=device_type)
        run.event("kernel", "gemm", 10, 20, track=stream)
    engine = run.open().engine
    return RuleContext(engine, find_scope(engine))


@pytest.mark.parametrize(
    ("op", "device_type", "named", "advice"),
    [
        ("aten::mm", "cuda", "CUDA graphs", "compile the model (torch.compile, mode='reduce-overhead' replays CUDA graphs)"),
        ("aten::mm", "hip", "HIP graphs", "compile the model (torch.compile, mode='reduce-overhead' replays HIP graphs)"),
        ("aten::mm", "npu", "", "compile the model (torch.compile)"),
        ("aten::mm", None, "CUDA graphs", "compile the model (torch.compile, mode='reduce-overhead' replays CUDA graphs)"),
        ("PjitFunction(step)", "hip", "HIP graphs", "put the whole step under one jax.jit (several steps under jax.lax.scan)"),
    ],
)  # fmt: skip
def test_what_the_device_and_the_framework_have(
    tmp_path: Path, op: str, device_type: str | None, named: str, advice: str
) -> None:
    context = context_of(tmp_path / "run", op, device_type)
    assert graphs(context) == named
    assert compile_advice(context) == advice
    assert is_jax(context) == op.startswith("Pjit")


def test_copies_of_jax_are_not_told_to_pin_memory() -> None:
    assert "pin" in copy_advice("Memcpy HtoD (Pageable -> Device)", "", False)
    assert copy_advice("Memcpy HtoD (Pageable -> Device)", "", True).startswith(
        "Put the next batch on the device"
    )


@pytest.mark.parametrize(
    ("name", "has_tf32"),
    [("NVIDIA GeForce RTX 2080 Ti", False), ("Tesla V100-SXM2-16GB", False), ("NVIDIA A100-SXM4-80GB", True),
     ("NVIDIA RTX 2000 Ada Generation", True), ("", True)],
)  # fmt: skip
def test_tf32_is_for_devices_that_have_it(name: str, has_tf32: bool) -> None:
    assert ("Allow TF32" in fp32_advice([{"name": name}])) == has_tf32
    assert ("neither TF32 nor bfloat16" in fp32_advice([{"name": name}])) != has_tf32


def test_shapes_that_are_no_json_are_unknown(tmp_path: Path) -> None:
    run = RunBuilder(tmp_path / "run")
    run.steps(2, 100)
    run.op("aten::mm", 10, 20, shapes="4096;\r\n32,9216;\r\n")
    run.op("aten::mm", 110, 20, shapes="[[16, 8], [8, 8]]")
    with run.open() as opened:
        rows = opened.engine.sql("SELECT step, input_rows FROM step_rollup ORDER BY step").rows()
    assert rows == [{"step": 0, "input_rows": None}, {"step": 1, "input_rows": 16}]
