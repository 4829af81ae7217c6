"""Phases of host events made by hand."""

from __future__ import annotations

import numpy as np

from explorer.collectors.capture.coded_names import CodedNames
from explorer.collectors.capture.phases import PHASE_NAMES, phases_of


def phases(rows: list[tuple[str, str, int, int]]) -> list[str]:
    """Rows of one thread: name, category, parent's row (-1: none), autograd number (-1: none)."""
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
        np.zeros(len(rows), bool),
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
