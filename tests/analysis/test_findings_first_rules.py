"""The first rules on runs written by hand: exact numbers, the right line, and no alarm without a fault."""

from __future__ import annotations

from pathlib import Path

import pytest

from explorer.analysis.findings import find
from explorer.model.finding import Finding, Findings
from tests.analysis.evidence import check_evidence
from tests.analysis.run_builder import RunBuilder, at


@pytest.fixture
def builder(tmp_path: Path) -> RunBuilder:
    return RunBuilder(tmp_path / "run")


def only(findings: Findings, rule: str) -> Finding:
    assert [item for item in findings.not_checked if "failed" in item.reason] == []
    found = [finding for finding in findings if finding.rule == rule]
    assert len(found) == 1, [(finding.rule, finding.title) for finding in findings]
    return found[0]


def busy_steps(builder: RunBuilder, count: int = 4, duration: float = 10_000) -> int:
    """Steps that compute from end to end on one line."""
    builder.steps(count, duration)
    site = builder.line(50, "loss = model(x)")
    for i in range(count):
        builder.state(site, i * duration, duration)
        builder.op("aten::addmm", i * duration, duration - 10, site=site)
    return site


def test_a_clean_run_has_no_findings(builder: RunBuilder) -> None:
    busy_steps(builder)
    assert list(find(builder.open())) == []


def test_data_loader_stall_names_the_heavy_line_of_the_dataset(builder: RunBuilder) -> None:
    builder.steps(4, 10_000)
    loop = builder.line(40, "for batch in loader:")
    heavy = builder.line(12, "x = augment(x)", "Data.__getitem__", "data.py")
    train = builder.line(50, "loss = model(x)")
    for i in range(4):
        start = i * 10_000
        builder.event(
            "data", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", start, 4_000, site=loop
        )
        builder.state(loop, start, 500)
        builder.state(heavy, start + 500, 3_500, stack=builder.stack(heavy, loop))
        builder.state(train, start + 4_000, 6_000)
        builder.op("aten::addmm", start + 4_000, 5_990, site=train)
    finding = only(find(builder.open()), "data_loader_stall")
    assert finding.lines[0].file == "data.py"
    assert finding.lines[0].line == 12
    assert finding.lines[0].time_ns == 3_500_000
    # One fetch of 4 ms per step, hidden by workers but for the handoff of 0.2 ms.
    assert finding.saving.expected == 3_800_000
    assert finding.saving.high == 4_000_000
    assert finding.saving.basis == "replay"
    assert finding.severity == "high"
    assert "getting 1 batch." in finding.evidence[0].statement
    assert "4 ms" in finding.evidence[0].statement


def test_after_a_pause_in_a_fetch_the_time_is_the_hot_lines(builder: RunBuilder) -> None:
    builder.steps(4, 10_000)
    caller, loop = builder.line(30, "def main():", "main"), builder.line(40, "for batch in loader:", "main")
    hot = builder.line(12, "return [v / 17 for v in self.values[index]]", "Data.__getitem__", "data.py")
    train = builder.line(50, "loss = model(x)", "main")
    for i in range(4):
        start = i * 10_000
        builder.event("data", "next", start, 4_000, site=loop)
        builder.state(loop, start, 500)
        if i == 3:
            # Recording was not taken up since the batch before: nothing says which line this is.
            builder.rows["host_states"].pop()
            builder.state(caller, start, 4_000)
        else:
            builder.state(hot, start + 500, 100, stack=builder.stack(hot, loop))
            builder.state(caller, start + 600, 3_400)
            builder.op("aten::detach_", start + 700, 10, site=caller)
        builder.state(train, start + 4_000, 6_000)
        builder.op("aten::addmm", start + 4_000, 5_990, site=train)
    finding = only(find(builder.open()), "data_loader_stall")
    assert [(line.file, line.line) for line in finding.lines] == [("data.py", 12), ("train.py", 40)]
    assert finding.lines[0].time_ns == 3_500_000
    assert "data.py:12" in finding.advice


def test_io_in_step_is_charged_to_its_line(builder: RunBuilder) -> None:
    busy_steps(builder)
    save = builder.line(61, "torch.save(model.state_dict(), path)")
    for i in range(4):
        builder.event("io", "write", i * 10_000 + 9_000, 800, site=save, size_bytes=1_000)
    finding = only(find(builder.open()), "io_in_step")
    assert (finding.lines[0].line, finding.saving.expected) == (61, 800_000)
    assert "save every" in finding.advice


def test_steps_of_different_lengths_are_shortened_each_by_its_own_part(builder: RunBuilder) -> None:
    save, train = builder.line(61, "torch.save(state, path)"), builder.line(50, "loss = model(x)")
    start = 0
    for number, (length, part) in enumerate(
        ((10_000, 0.0), (12_000, 0.5), (14_000, 0.5), (30_000, 0.5), (32_000, 0.5))
    ):
        saved = length * part
        builder.steps(1, length, first=number, start=start)
        builder.state(train, start, length - saved)
        builder.op("aten::addmm", start, length - saved, site=train)
        if saved:
            builder.state(save, start + length - saved, saved)
            builder.event("io", "write", start + length - saved, saved, site=save)
        start += length
    finding = only(find(builder.open()), "io_in_step")
    # Half of the median step of 14 ms. The median of the steps without it is the first one, of 10 ms.
    assert (finding.saving.expected, finding.saving.basis) == (7_000_000, "replay")


def test_a_checkpoint_now_and_then_counts_per_step_after_the_first(builder: RunBuilder) -> None:
    busy_steps(builder, count=5)
    save = builder.line(61, "torch.save(state, path)")
    builder.event("io", "write", 1_000, 5_000, site=save)  # set-up in the first step
    builder.event("io", "write", 29_000, 800, site=save)
    assert only(find(builder.open()), "io_in_step").saving.expected == 200_000


def test_row_loop_swallows_tiny_ops_and_python(builder: RunBuilder) -> None:
    builder.steps(2, 10_000)
    header = builder.line(20, "for i in range(x.shape[0]):", "normalise")
    body = builder.line(21, "out[i] = x[i] / x[i].norm()", "normalise")
    rest = builder.line(50, "loss = model(out)")
    for step in range(2):
        start = step * 10_000
        for i in range(100):
            now = start + i * 50
            builder.state(header, now, 5)
            builder.state(body, now + 5, 45)
            for k, name in enumerate(
                ("aten::select", "aten::select", "aten::linalg_vector_norm", "aten::div", "aten::copy_")
            ):
                builder.op(name, now + 6 + 8 * k, 4, site=body)
        builder.state(rest, start + 5_000, 5_000)
        builder.op("aten::addmm", start + 5_000, 4_990, site=rest)
    findings = find(builder.open())
    finding = only(findings, "row_loop")
    assert [item.rule for item in findings] == ["row_loop"]
    assert finding.lines[0].line == 21
    assert finding.lines[1].line == 20
    # The loop takes 5 ms of the step; its ops are all shorter than a call costs, so nothing of it has to stay.
    assert finding.saving.expected == 5_000_000
    assert "passes 100 times and calls 500 ops" in finding.evidence[0].statement
    assert any(text.startswith("tiny_ops") for text in finding.symptoms)
    assert any(text.startswith("host_bound") for text in finding.symptoms)


def test_a_loop_over_layers_is_no_row_loop(builder: RunBuilder) -> None:
    builder.steps(2, 10_000)
    header = builder.line(20, "for layer in self.layers:", "forward")
    body = builder.line(21, "x = layer(x)[..., :64]", "forward")
    for i in range(40):
        builder.state(header, i * 500, 10)
        builder.state(body, i * 500 + 10, 490)
        builder.op("aten::addmm", i * 500 + 10, 440, site=body)
        builder.op("aten::slice", i * 500 + 460, 10, site=body)
    assert list(find(builder.open())) == []


def test_single_tensor_optimizer(builder: RunBuilder) -> None:
    builder.steps(3, 10_000)
    site = builder.line(60, "optimizer.step()")
    train = builder.line(50, "loss = model(x)")
    for i in range(3):
        start = i * 10_000
        builder.state(train, start, 6_000)
        builder.op("aten::addmm", start, 5_990, site=train)
        builder.state(site, start + 6_000, 4_000)
        outer = builder.event("annotation", "Optimizer.step#AdamW.step", start + 6_000, 3_900, site=site)
        for k in range(200):
            builder.op("aten::mul_", start + 6_000 + k * 19, 10, site=site, parent=outer)
    findings = find(builder.open())
    finding = only(findings, "single_tensor_optimizer")
    assert finding.lines[0].line == 60
    assert "200 ops, 0 of them on whole lists" in finding.evidence[0].statement
    assert "fused=True" in finding.advice
    # 1.9 ms of Python and 2 ms of ops, of which 200 calls of 1.5 us.
    assert finding.saving.expected == round(0.85 * 1_900_000 + 0.9 * 300_000 + 0.6 * 1_700_000)


def test_foreach_optimizer_is_clean(builder: RunBuilder) -> None:
    builder.steps(3, 10_000)
    site = builder.line(60, "optimizer.step()")
    for i in range(3):
        outer = builder.event("annotation", "Optimizer.step#AdamW.step", i * 10_000, 9_900, site=site)
        builder.state(site, i * 10_000, 10_000)
        for k in range(30):
            builder.op("aten::_foreach_mul_", i * 10_000 + k * 330, 325, site=site, parent=outer)
    assert list(find(builder.open())) == []


def test_host_bound_on_the_cpu_names_the_python_line(builder: RunBuilder) -> None:
    builder.steps(2, 10_000)
    heavy = builder.line(33, "tokens = [vocab[w] for w in text.split()]", "encode")
    train = builder.line(50, "loss = model(x)")
    for i in range(2):
        builder.state(heavy, i * 10_000, 3_000)
        builder.state(train, i * 10_000 + 3_000, 7_000)
        builder.op("aten::addmm", i * 10_000 + 3_000, 6_990, site=train)
    finding = only(find(builder.open()), "host_bound")
    assert finding.lines[0].line == 33
    assert (finding.saving.expected, finding.saving.high) == (3_000_000, 3_000_000)


@pytest.mark.parametrize(("module_us", "found"), [(2_900, []), (0, ["host_bound"])])
def test_python_of_library_modules_is_not_the_programs(
    builder: RunBuilder, module_us: int, found: list[str]
) -> None:
    builder.steps(2, 10_000)
    call = builder.line(50, "model(x)")
    for i in range(2):
        builder.state(call, i * 10_000, 10_000)
        builder.rows["host_states"][-1]["module_python_ns"] = module_us * 1_000
        builder.op("aten::_transformer_encoder_layer_fwd", i * 10_000 + 3_000, 7_000, site=call)
    assert [item.rule for item in find(builder.open())] == found


def test_what_recording_cost_is_not_the_programs_python(builder: RunBuilder) -> None:
    builder.cost = {"line_ns": 1_000.0, "call_ns": 500.0, "module_ns": 0.0}
    builder.steps(2, 10_000)
    call = builder.line(50, "y = encode(x)")
    for i in range(2):
        builder.state(call, i * 10_000, 10_000)
        # 1 ms outside ops, nearly all of it for 1,996 calls that were looked at.
        builder.rows["host_states"][-1] |= {"line_records": 1, "skipped_calls": 1_996}
        builder.op("aten::mm", i * 10_000 + 1_000, 9_000, site=call)
    assert list(find(builder.open())) == []


def test_a_pause_falls_to_one_line_of_a_loop_or_another(builder: RunBuilder) -> None:
    builder.steps(6, 10_000)
    caller, call = builder.line(1, "def main():", "main"), builder.line(5, "table = count(labels)", "main")
    train = builder.line(6, "loss = model(x)", "main")
    lines = [
        builder.line(20, "for t in labels:", "count"),
        builder.line(21, "table[t] += 1", "count"),
    ]
    for i in range(6):
        start = i * 10_000
        for k in (0, 1):
            hot = lines[(i + k) % 2]
            builder.state(hot, start + k * 10, 10, stack=builder.stack(hot, call))
        builder.state(caller, start + 20, 980)
        builder.state(train, start + 1_000, 9_000)
        builder.op("aten::mm", start + 1_000, 9_000, site=train)
    finding = only(find(builder.open()), "host_bound")
    assert {line.line for line in finding.lines} == {20, 21}
    assert finding.saving.expected == 1_000_000


def device_run(builder: RunBuilder, kernel: float, gap: float, count: int) -> int:
    """One step of kernels with idle gaps between them."""
    stream = builder.stream()
    builder.steps(2, 10_000)
    site = builder.line(50, "loss = model(x)")
    for step in range(2):
        builder.state(site, step * 10_000, 10_000)
        for i in range(count):
            start = step * 10_000 + i * (kernel + gap)
            builder.op("aten::mul", start, 5, site=site)
            builder.event("kernel", "elementwise", start, kernel, track=stream, site=site)
    return site


def test_host_bound_on_a_device_is_idle_time(builder: RunBuilder) -> None:
    device_run(builder, kernel=500, gap=500, count=10)
    finding = only(find(builder.open()), "host_bound")
    # Nine gaps of 0.5 ms inside each step and, over two steps, one of 0.5 ms between them.
    assert "4.75 ms per step" in finding.evidence[0].statement
    assert finding.lines[0].line == 50


def test_tiny_kernels_are_launch_bound_and_host_bound_is_their_symptom(builder: RunBuilder) -> None:
    device_run(builder, kernel=5, gap=15, count=500)
    findings = find(builder.open())
    finding = only(findings, "tiny_ops")
    assert "500 of 500 kernels per step are short" in finding.evidence[0].statement
    assert any(text.startswith("host_bound") for text in finding.symptoms)
    assert [item.rule for item in findings] == ["tiny_ops"]


def test_host_sync_counts_the_drained_queue_not_the_wait(builder: RunBuilder) -> None:
    stream = builder.stream()
    builder.steps(2, 10_000)
    item = builder.line(57, "total += loss.item()")
    train = builder.line(50, "loss = model(x)")
    for step in range(2):
        start = step * 10_000
        builder.event("kernel", "gemm", start, 4_000, track=stream, site=train)
        outer = builder.op("aten::item", start + 1_000, 3_050, site=item)
        builder.event("sync", "cudaStreamSynchronize", start + 1_010, 3_000, site=item, parent=outer)
        builder.state(item, start + 1_000, 3_100)
        builder.state(train, start + 4_100, 5_900)
        builder.event("kernel", "gemm", start + 4_500, 5_500, track=stream, site=train)
    finding = only(find(builder.open()), "host_sync")
    assert finding.lines[0].line == 57
    assert finding.saving.high == 500_000
    assert "3 ms" in finding.evidence[0].statement
    assert "0.5 ms" not in finding.evidence[0].statement
    assert "500 µs" in finding.evidence[0].statement
    assert ".item()" in finding.title


def test_a_wait_without_idle_device_is_no_finding(builder: RunBuilder) -> None:
    stream = builder.stream()
    builder.steps(1, 10_000)
    item = builder.line(57, "total += loss.item()")
    builder.event("kernel", "gemm", 0, 10_000, track=stream)
    builder.event("sync", "cudaStreamSynchronize", 1_000, 3_000, site=item)
    builder.op("aten::item", 900, 3_200, site=item)
    assert list(find(builder.open())) == []


def test_exposed_copies_leave_out_what_compute_hides(builder: RunBuilder) -> None:
    compute, copies = builder.stream(), builder.stream(label="stream 20")
    builder.steps(2, 10_000)
    line = builder.line(48, "x = x.to('cuda')")
    for step in range(2):
        start = step * 10_000
        builder.event(
            "copy",
            "Memcpy HtoD (Pageable -> Device)",
            start,
            3_000,
            track=copies,
            site=line,
            size_bytes=1_000_000,
        )
        builder.event("kernel", "gemm", start + 2_000, 8_000, track=compute)
        builder.op("aten::mm", start, 10, site=line)
    finding = only(find(builder.open()), "exposed_copies")
    assert finding.saving.high == 2_000_000
    assert finding.lines[0].line == 48
    assert "pin" in finding.advice


def test_savings_never_exceed_the_step(builder: RunBuilder) -> None:
    builder.steps(2, 1_000)
    for line in range(10, 16):
        site = builder.line(line, f"work{line}()", f"work{line}")
        for step in range(2):
            builder.state(site, step * 1_000 + (line - 10) * 160, 160)
            builder.event("io", "read", step * 1_000 + (line - 10) * 160, 160, site=site)
    findings = find(builder.open())
    assert len(findings) == 6
    assert sum(finding.saving.expected for finding in findings) <= findings.step_ns


def test_profiling_cost_is_taken_off(builder: RunBuilder) -> None:
    builder.cost = {"op_ns": 5_000, "line_ns": 0}
    builder.steps(2, 10_000)
    header = builder.line(20, "for i in range(n):", "f")
    body = builder.line(21, "out[i] = x[i]", "f")
    train = builder.line(50, "loss = model(x)")
    for step in range(2):
        for i in range(100):
            now = step * 10_000 + i * 50
            builder.state(header, now, 5)
            builder.state(body, now + 5, 45)
            for k in range(4):
                builder.op("aten::select", now + 6 + 9 * k, 4, site=body)
        builder.state(train, step * 10_000 + 5_000, 5_000)
        builder.op("aten::addmm", step * 10_000 + 5_000, 4_990, site=train)
    findings = find(builder.open())
    # 401 ops of 5 us recording each: the step really takes 10 - 2.005 ms, the loop 5 - 2 ms.
    assert findings.step_ns == 10_000_000 - 401 * 5_000
    assert only(findings, "row_loop").saving.expected == 3_000_000


def test_rules_without_their_inputs_say_so(builder: RunBuilder) -> None:
    busy_steps(builder)
    reasons = {item.rule: item.reason for item in find(builder.open()).not_checked}
    assert reasons["exposed_copies"] == "the run holds no device events"
    assert "nothing to wait for" in reasons["host_sync"]


@pytest.mark.parametrize(("process", "level"), [(95.0, "high"), (25.0, "medium")])
def test_a_contended_machine_lowers_confidence(builder: RunBuilder, process: float, level: str) -> None:
    busy_steps(builder)
    for i in range(4):
        builder.event(
            "io", "write", i * 10_000 + 9_000, 800, site=builder.line(61, "torch.save(state, path)")
        )
    track = builder.track("counter", "cpu", None, "host")
    for name, value in (("machine.cpu", 100.0), ("process.cpu", process)):
        builder.row(
            "counters", track_id=track, timestamp_ns=at(5_000), name=name, value=value, unit="percent"
        )
    finding = only(find(builder.open()), "io_in_step")
    assert finding.confidence == level
    assert any("25 % of a core" in caveat for caveat in finding.caveats) == (level == "medium")


def test_hot_code_keeps_the_time_after_its_recording_paused(builder: RunBuilder) -> None:
    builder.steps(4, 10_000)
    caller, call = builder.line(1, "def main():", "main"), builder.line(5, "table = count(labels)", "main")
    train, hot = builder.line(6, "loss = model(x)", "main"), builder.line(21, "table[t] += 1", "count")
    chain = builder.stack(hot, call)
    for i in range(4):
        start = i * 10_000
        builder.state(hot, start, 200, stack=chain)
        # The recorder lets go: until it is taken up, main is all that is known, and only up to the op it is count's time.
        builder.state(caller, start + 200, 6_000)
        builder.op("aten::mm", start + 3_200, 2_990, site=caller)
        builder.state(train, start + 6_200, 3_800)
        builder.op("aten::mm", start + 6_210, 3_780, site=train)
    run = builder.open()
    finding = only(find(run), "host_bound")
    assert (finding.lines[0].line, finding.lines[0].function) == (21, "count")
    assert "3.2 ms per step in Python" in finding.evidence[0].statement
    assert 3_100_000 < finding.saving.expected <= 3_200_000
    assert any("paused" in caveat for caveat in finding.caveats)
    check_evidence(run, find(run))


def test_too_many_threads_are_set_by_the_last_such_line_before_the_steps(builder: RunBuilder) -> None:
    builder.host = {"torch_threads": 32, "usable_cpus": 2}
    builder.steps(3, 10_000, start=1_000)
    first = builder.line(3, "torch.set_num_threads(2)")
    there = builder.line(13, "torch.set_num_threads(32)")
    after = builder.line(25, "torch.set_num_threads(before)")
    train = builder.line(50, "loss = model(x)")
    builder.state(first, 0, 10)
    builder.state(there, 100, 10)
    for i in range(3):
        builder.state(train, 1_000 + i * 10_000, 10_000)
        builder.op("aten::addmm", 1_000 + i * 10_000, 9_990, site=train)
    builder.state(after, 32_000, 10)
    finding = only(find(builder.open()), "thread_oversubscription")
    assert [line.line for line in finding.lines] == [13, 3, 25, 50]
    # One loop over 32 threads on 2 cores: 30 turns of 12 µs.
    assert finding.saving.expected == 360_000
