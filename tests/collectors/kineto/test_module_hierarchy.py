"""`Module Hierarchy` texts (2022, TorchScript) become modules."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from explorer.collectors.kineto.hierarchy import parse_hierarchy
from tests.collectors.imported import Imported


@pytest.mark.parametrize(
    ("text", "modules"),
    [
        ("TOP(C)::forward.A0(A)::forward.B0(B)::forward.", [("C", "C"), ("C.A0", "A"), ("C.A0.B0", "B")]),
        ("TOP(C)::forward.SELF(C)::helper.A0(A)::forward.", [("C", "C"), ("C.A0", "A")]),
        ("TOP(C)::forward.", [("C", "C")]),
        ("", []),
        ("no calls.", []),
    ],
)
def test_texts(text: str, modules: list[tuple[str, str]]) -> None:
    assert parse_hierarchy(text) == modules


def op(number: int, start: int, hierarchy: str | None, **args: Any) -> dict[str, Any]:
    more = {} if hierarchy is None else {"Module Hierarchy": hierarchy}
    return {
        "ph": "X", "cat": "cpu_op", "name": f"op{number}", "pid": 1, "tid": 1, "ts": start, "dur": 10,
        "args": {"External id": number, **args, **more},
    }  # fmt: skip


def test_ops_and_what_they_launch_have_the_module(tmp_path: Path) -> None:
    rows = [
        op(1, 0, "TOP(Net)::forward.layer1(Block)::forward.", **{"Call stack": "train.py(7): step;train.py(9): main"}),
        {"ph": "X", "cat": "cpu_op", "name": "inner", "pid": 1, "tid": 1, "ts": 2, "dur": 3},
        {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 3, "dur": 1,
         "args": {"correlation": 4}},
        {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 20, "dur": 5,
         "args": {"device": 0, "stream": 7, "correlation": 4}},
        op(2, 30, "TOP(Net)::forward."),
        op(3, 50, ""),
        op(4, 70, None, **{"Call stack": "train.py(8): step"}),
    ]  # fmt: skip
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"traceEvents": rows}))
    run = Imported(path, tmp_path)
    modules = {row["module_id"]: row for row in run.rows("modules")}
    paths = {
        row["name"]: row["module_id"] and modules[row["module_id"]]["path"] for row in run.rows("events")
    }
    assert paths == {
        "op1": "Net.layer1", "inner": "Net.layer1", "cudaLaunchKernel": "Net.layer1", "gemm": "Net.layer1",
        "op2": "Net", "op3": None, "op4": None,
    }  # fmt: skip
    (block,) = (row for row in modules.values() if row["class_name"] == "Block")
    assert modules[block["parent_id"]]["path"] == "Net"
    # The lines beside them are those of the call stacks.
    sites = {row["site_id"]: (row["file"], row["line"]) for row in run.rows("sites")}
    lines = {row["name"]: sites.get(row["site_id"]) for row in run.rows("events")}
    assert (lines["op1"], lines["op2"], lines["op4"]) == (("train.py", 7), None, ("train.py", 8))
    assert json.loads(next(row for row in run.rows("events", name="op2"))["attributes"])["Module Hierarchy"]
