"""Gradients in inference are told at the call that the step makes, not where in the model the time falls."""

from __future__ import annotations

from pathlib import Path

from explorer.analysis.findings import find
from tests.analysis.evidence import check_evidence
from tests.analysis.run_builder import RunBuilder


def test_the_line_is_the_call_of_the_step(tmp_path: Path) -> None:
    builder = RunBuilder(tmp_path / "run")
    start = builder.line(40, "main(12)", "<module>")
    call = builder.line(31, "model(xs)", "main")
    cell, head = (
        builder.line(15, "state = self.cell(x, state)", "forward"),
        builder.line(16, "return self.head(state)", "forward"),
    )
    builder.steps(4, 1_000)
    for step in range(4):
        begin = step * 1_000
        builder.state(call, begin, 100, stack=builder.stack(call, start))
        builder.state(cell, begin + 100, 700, stack=builder.stack(cell, call, start))
        builder.state(head, begin + 800, 200, stack=builder.stack(head, call, start))
        for k in range(20):
            builder.op("aten::tanh", begin + 100 + 30 * k, 25, site=cell, stack=builder.stack(cell, call, start), phase="forward")  # fmt: skip
        builder.op("aten::mul", begin + 800, 150, site=head, stack=builder.stack(head, call, start), phase="forward")  # fmt: skip
    run = builder.open()
    findings = find(run)
    (finding,) = [item for item in findings if item.rule == "grads_in_inference"]
    assert [(line.line, line.time_ns) for line in finding.lines] == [(31, 650_000)]
    assert finding.advice.startswith("`model(xs)`: run inference under torch.inference_mode()")
    assert finding.evidence[0].statement.startswith("No backward pass, but 21 outermost ops per step, 650 µs")
    check_evidence(run, findings)
