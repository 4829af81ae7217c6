"""CUDA graphs: kernels of a replay have the lines that launched them during the capture, in a profile made by hand."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from tests.collectors.capture.handmade_window import Profile, Program


def capture(profile: Profile) -> None:
    """A graph of two kernels and a fill, from lines 1, 2 and 3; beside it a kernel that runs at once."""
    profile.line(9)
    profile.op("aten::ones", ("cudaLaunchKernel", 50))
    profile.device("fill_kernel", 50)
    profile.call("cudaStreamBeginCapture", 51)
    profile.line(1)
    profile.op("aten::mm", ("cuLaunchKernelEx", 52))
    profile.line(2)
    profile.op("aten::zero_", ("cudaMemsetAsync", 53))
    profile.line(3)
    profile.op("aten::relu", ("cudaLaunchKernel", 54))
    profile.call("cudaStreamEndCapture", 55)


def replay(profile: Profile, number: int, *nodes: str) -> None:
    """A replay at line 5 whose events begin in another order than they were captured."""
    profile.line(5)
    profile.call("cudaGraphLaunch", number)
    relu, gemm, memset = nodes or ("", "", "")
    profile.device("relu", number, relu)
    profile.device("gemm", number, gemm)
    profile.device("Memset", number, memset, "gpu_memset")


def node(number: int) -> str:
    return f'"graph id": 4, "graph node id": {number}'


def test_by_node_number_whatever_the_order() -> None:
    profile, program = Profile(), Program()
    capture(profile)
    for number in (60, 61):
        replay(profile, number, node(103), node(101), node(102))
    found = program.window(profile)
    once = [
        ("relu", 3, "graph_replay", "exact", 5),
        ("gemm", 1, "graph_replay", "exact", 5),
        ("Memset", 2, "graph_replay", "exact", 5),
    ]
    assert found == [("fill_kernel", 9, "flow", "exact", 9), *once, *once]


def test_by_order_where_nodes_have_no_number_and_in_a_later_window() -> None:
    program = Program()
    first = Profile()
    capture(first)
    program.window(first)
    second = Profile()
    second.line(5)
    second.call("cudaGraphLaunch", 60)
    for name, kind in (("gemm", "kernel"), ("Memset", "gpu_memset"), ("relu", "kernel")):
        second.device(name, 60, kind=kind)
    assert program.window(second) == [
        ("gemm", 1, "graph_replay", "inferred", 5),
        ("Memset", 2, "graph_replay", "inferred", 5),
        ("relu", 3, "graph_replay", "inferred", 5),
    ]


def test_a_graph_captured_unseen_stays_with_the_replay() -> None:
    program, profile = Program(), Profile()
    capture(profile)
    profile.line(5)
    profile.call("cudaGraphLaunch", 60)
    profile.device("other", 60)
    assert program.window(profile)[-1] == ("other", 5, "flow", "coarse", 5)


def test_graphs_of_one_form_are_told_apart_by_order_and_said_to_be() -> None:
    program, profile = Program(), Profile()
    for line in (1, 2):
        profile.call("cudaStreamBeginCapture", 70)
        profile.line(line)
        profile.op("aten::mm", ("cudaLaunchKernel", 71))
        profile.call("cudaStreamEndCapture", 72)
    for number, graph in ((80, 5), (81, 6), (82, 5)):
        profile.line(5)
        profile.call("cudaGraphLaunch", number)
        profile.device("gemm", number, f'"graph id": {graph}, "graph node id": {graph}')
    found = [(line, precision) for _, line, _, precision, _ in program.window(profile)]
    assert found == [(1, "inferred"), (2, "inferred"), (1, "inferred")]
