"""Lines matched through edits, kernels matched through new names."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from explorer.analysis.diff.explained import PathWork, matched_lines
from explorer.analysis.diff.kernel_match import family, renamed_kernels
from explorer.analysis.diff.line_map import line_map, moved_files

BEFORE = """import torch
def step(x):
    y = model(x)
    loss = y.sum().item()
    return loss
"""
AFTER = """import torch
import time

def step(x):
    y = model(x)
    loss = y.sum().detach()
    return loss
"""


def test_moved_and_edited_lines() -> None:
    assert line_map(BEFORE, AFTER) == {1: 1, 2: 4, 3: 5, 4: 6, 5: 7}


def test_a_file_under_another_name_is_the_one_that_shares_its_lines() -> None:
    text = "a = 1\nb = 2\nc = 3\nd = 4\n"
    before = {"slow.py": text, "same.py": text, "gone.py": "x\ny\n"}
    after = {"fast.py": text.replace("c = 3", "c = 9"), "same.py": "", "other.py": "a = 1\nq\nr\ns\n"}
    assert moved_files(before, after) == {"slow.py": "fast.py"}
    assert moved_files(after, after) == {}


def test_lines_of_a_renamed_file_are_followed() -> None:
    a = PathWork(0, 1, [], {"slow.py": "a\nb\nc\n"})
    b = PathWork(0, 1, [], {"fast.py": "new\na\nc\n"})
    assert matched_lines(a, b) == {
        "slow.py:1": "fast.py:2",
        "slow.py:2": "slow.py:2 (removed)",
        "slow.py:3": "fast.py:3",
        "slow.py:4": "slow.py:4 (removed)",
    }


def test_a_line_that_is_gone_matches_nothing() -> None:
    assert line_map("a = 1\nfor row in rows:\nb = 2\n", "a = 1\nb = 2\n") == {1: 1, 3: 2}


@given(
    st.lists(st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), max_size=8), max_size=12),
    st.integers(0, 12),
    st.text(max_size=5),
)
def test_maps_are_increasing_and_keep_untouched_files(lines: list[str], at: int, inserted: str) -> None:
    text = "\n".join(lines)
    assert line_map(text, text) == {n + 1: n + 1 for n in range(len(text.splitlines()))}
    changed = "\n".join([*lines[:at], inserted, *lines[at:]])
    mapping = line_map(text, changed)
    pairs = sorted(mapping.items())
    assert all(a[1] < b[1] for a, b in pairwise(pairs))


def kernel(name: str, op: str = "aten::mm", line: int = 1) -> dict[str, Any]:
    return {"kernel": name, "op": op, "file": "a.py", "line": line, "duration_ns": 1}


def test_families() -> None:
    assert family("void gemm<float, 128>(int)") == family("void gemm<half, 64>(int)")
    assert family("triton_poi_fused_add_0") == family("triton_poi_fused_add_7")
    assert family("gemm") != family("conv")


def test_renamed_by_family_then_by_work() -> None:
    before = [
        kernel("gemm<1>"),
        kernel("Cijk_Ailk", "aten::addmm", 9),
        kernel("same"),
        kernel("gone", "aten::sum", 3),
    ]
    after = [
        kernel("gemm<2>"),
        kernel("ampere_sgemm_128x64", "aten::addmm", 9),
        kernel("same"),
        kernel("fresh", "aten::exp", 4),
    ]
    assert renamed_kernels(before, after) == {"gemm<1>": "gemm<2>", "Cijk_Ailk": "ampere_sgemm_128x64"}


def test_ambiguous_names_stay_unmatched() -> None:
    before = [kernel("gemm<1>"), kernel("gemm<2>")]
    after = [kernel("gemm<3>"), kernel("gemm<4>")]
    assert renamed_kernels(before, after) == {}
