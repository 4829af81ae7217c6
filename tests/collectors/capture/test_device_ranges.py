"""The program's own ranges on a device: where it opened them, they have their line."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from tests.collectors.capture.handmade_window import Profile, Program


def test_a_range_on_the_device_has_the_line_that_opened_it() -> None:
    profile, program = Profile(), Program()
    profile.line(4)
    profile.add("attention", "user_annotation", 2000, correlation=30)
    profile.now += 100
    profile.line(5)
    profile.op("aten::mm", ("cudaLaunchKernel", 50))
    profile.device("gemm", 50)
    profile.device("attention", 30, kind="gpu_user_annotation")
    assert program.window(profile) == [
        ("gemm", 5, "flow", "exact", 5),
        ("attention", 4, "flow", "exact", 4),
    ]
