"""A serving engine's forward passes become steps with phase and batch tokens."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from explorer.analysis.run import open_run
from explorer.collectors.import_trace import import_trace
from explorer.collectors.inference_step import inference_step_of


@pytest.mark.parametrize(
    ("name", "phase", "tokens"),
    [
        ("execute_context_1(128)_generation_0(0)", "prefill", (128, 0)),
        ("execute_context_0(0)_generation_32(32)", "decode", (0, 32)),
        ("execute_context_2(700)_generation_30(30)", "prefill", (700, 30)),
        ("execute_new_2_cached_5", "prefill", (None, None)),
        ("execute_new_0_cached_8", "decode", (None, None)),
    ],
)
def test_names(name: str, phase: str, tokens: tuple[int | None, int | None]) -> None:
    found = inference_step_of(name)
    assert found is not None
    assert (found.phase, (found.context_tokens, found.generation_tokens)) == (phase, tokens)


@pytest.mark.parametrize(
    "name",
    [
        "execute_model",
        "execute_new_1",
        "execute_new_1_cached_2_x",
        "execute_context_1(2)",
        "aten::mm",
        "execute_context_(1)_generation_1(1)",
    ],
)
def test_other_names(name: str) -> None:
    assert inference_step_of(name) is None


def test_passes_are_steps(tmp_path: Path) -> None:
    def event(name: str, start: float, duration: float, category: str) -> dict[str, object]:
        return {
            "ph": "X",
            "cat": category,
            "name": name,
            "ts": start,
            "dur": duration,
            "pid": 1,
            "tid": 1,
            "args": {},
        }

    trace = [
        event("execute_context_1(128)_generation_0(0)", 100.0, 50.0, "user_annotation"),
        event("aten::mm", 110.0, 10.0, "cpu_op"),
        event("execute_context_0(0)_generation_4(4)", 200.0, 20.0, "user_annotation"),
        event("aten::mm", 205.0, 5.0, "cpu_op"),
        event("aten::add", 300.0, 5.0, "cpu_op"),
    ]
    (tmp_path / "t.json").write_text(json.dumps({"schemaVersion": 1, "traceEvents": trace}))
    run = open_run(import_trace(tmp_path / "t.json", tmp_path / "run").directory)
    steps = run.sql("SELECT step, duration_ns, phase FROM steps ORDER BY step").rows()
    assert steps == [
        {"step": 0, "duration_ns": 50_000, "phase": "prefill"},
        {"step": 1, "duration_ns": 20_000, "phase": "decode"},
    ]
    ops = run.sql("SELECT name, step FROM events WHERE category = 'op' ORDER BY start_ns").rows()
    assert [(row["name"], row["step"]) for row in ops] == [
        ("aten::mm", 0),
        ("aten::mm", 1),
        ("aten::add", None),
    ]
    rows = run.sql(
        "SELECT step, phase, context_requests, context_tokens, generation_requests, generation_tokens FROM inference_steps"
    ).rows()
    assert [tuple(row.values()) for row in rows] == [(0, "prefill", 1, 128, 0, 0), (1, "decode", 0, 0, 4, 4)]
