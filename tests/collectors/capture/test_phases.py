"""Phases of host events made by hand."""

from __future__ import annotations

import numpy as np

from explorer.collectors.capture.coded_names import CodedNames
from explorer.collectors.capture.phases import PHASE_NAMES, phases_of


def phases(
    rows: list[tuple[str, str, int, int]],
    backward: tuple[int, ...] = (),
    before: dict[int, int] | None = None,
) -> list[str]:
    """Rows of one thread: name, category, parent's row (-1: none), autograd number (-1: none); rows of the backward pass."""
    names, categories, parents, sequences = zip(*rows)
    depth: list[int] = []
    for parent in parents:
        depth.append(depth[parent] + 1 if parent >= 0 else 0)
    found = phases_of(
        CodedNames.of(names),
        CodedNames.of(categories),
        np.zeros(len(rows), np.int64),
        np.arange(len(rows), dtype=np.int64) * 10,
        np.array(parents, np.int64),
        [np.flatnonzero(np.array(depth) == level) for level in range(max(depth) + 1)],
        np.array(sequences, np.int64),
        np.isin(np.arange(len(rows)), backward),
        before,
    )
    return [PHASE_NAMES[number] for number in found]


def test_kernels_of_a_compiled_graph_have_the_phase_of_the_call() -> None:
    assert phases(
        [
            ("Torch-Compiled Region: 0/0", "op", -1, -1),
            ("CompiledFunction", "op", 0, 7),
            ("## Call CompiledFxGraph abc ##", "annotation", 1, -1),
            ("cpp_fused_gelu_0", "op", 2, -1),
            ("aten::addmm", "op", 2, -1),
            ("aten::copy_", "op", 4, -1),
        ]
    ) == ["forward", "forward", "other", "forward", "forward", "forward"]


def test_a_range_of_the_program_says_nothing_of_the_phase() -> None:
    assert phases(
        [
            ("my range", "annotation", -1, -1),
            ("aten::linear", "op", 0, -1),
            ("aten::addmm", "op", 1, -1),
        ]
    ) == ["other", "evaluation", "evaluation"]


def op(name: str, number: int = -1) -> tuple[str, str, int, int]:
    return (f"aten::{name}", "op", -1, number)


ENGINE = ("autograd::engine::evaluate_function: MmBackward0", "op", -1, 0)
STEP = ("Optimizer.step#SGD.step", "annotation", -1, -1)
ZERO_GRAD = ("Optimizer.zero_grad#SGD.zero_grad", "annotation", -1, -1)


def test_ops_that_build_the_next_input_are_forward() -> None:
    rows = [op("randn"), op("linear", 0), ENGINE, STEP, op("randn"), op("to"), op("linear", 1)]
    assert phases(rows, (2,)) == [
        "forward", "forward", "backward", "optimizer", "forward", "forward", "forward",
    ]  # fmt: skip


def test_clipping_and_ema_are_the_optimizers() -> None:
    rows = [
        op("linear", 0),
        ENGINE,
        op("_foreach_norm"),
        op("stack"),
        op("_foreach_mul_"),
        STEP,
        op("mul_"),
        op("add_"),
    ]
    assert phases(rows, (1,)) == ["forward", "backward", *["optimizer"] * 6]


def test_averages_before_an_evaluation_are_not_the_evaluation() -> None:
    rows = [
        op("linear", 0), ENGINE, STEP, ZERO_GRAD, op("lerp_"), op("lerp_"), op("randn"), op("linear"), op("argmax"),
    ]  # fmt: skip
    assert phases(rows, (1,))[4:] == ["optimizer", "optimizer", "evaluation", "evaluation", "evaluation"]


def test_reading_the_loss_out_is_neither() -> None:
    rows = [op("linear", 0), ENGINE, STEP, op("detach"), op("item"), op("zeros"), op("linear", 1)]
    assert phases(rows, (1,))[3:] == ["other", "other", "forward", "forward"]


def test_the_average_after_the_last_step_of_a_window_is_the_optimizers() -> None:
    before: dict[int, int] = {}
    assert phases([op("linear", 0), ENGINE, STEP], (1,), before) == ["forward", "backward", "optimizer"]
    assert before == {0: PHASE_NAMES.index("optimizer")}
    assert phases([op("lerp_"), op("randn"), op("linear", 1)], (), before) == [
        "optimizer",
        "forward",
        "forward",
    ]
    assert before == {0: PHASE_NAMES.index("forward")}
