"""Real recorded programs: the planted fault is among the first three findings, and all evidence can be reproduced."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from benchmarks.planted.cases import clean_cases, planted_cases  # noqa: E402
from explorer import neuron_profile, open_run  # noqa: E402
from tests.analysis.evidence import check_evidence  # noqa: E402
from tests.traces import trace  # noqa: E402

pytestmark = pytest.mark.capture

# One of each kind of measurement: host states, ops, backward ops, I/O, data loading, dtypes.
CHOSEN = (
    "anomaly_mode", "denormal_second_moment", "float64_model", "io_log_flush", "loader_tokenise", "optimizer_adamw_many", "python_list_to_tensor",
    "recompute_everything", "row_mask_elements",
)  # fmt: skip
PLANTED = {case.name: case for case in planted_cases()}


@pytest.fixture(autouse=True)
def _one_thread() -> object:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("name", CHOSEN)
def test_a_planted_fault_is_found_at_its_line(name: str, tmp_path: Path) -> None:
    case = PLANTED[name]
    with neuron_profile(str(tmp_path / "run")) as profile:
        case.run(True, 6, profile.step)
    with open_run(profile.directory) as run:
        findings = run.bottlenecks()
        assert [item for item in findings.not_checked if "failed" in item.reason] == []
        found = [finding for finding in findings[:3] if finding.rule in case.kinds]
        assert found, [(finding.rule, finding.title) for finding in findings]
        assert found[0].lines[0].line in case.lines
        check_evidence(run, findings)


def test_ordinary_numbers_are_no_denormals(tmp_path: Path) -> None:
    with neuron_profile(str(tmp_path / "run")) as profile:
        PLANTED["denormal_second_moment"].run(False, 6, profile.step)
    with open_run(profile.directory) as run:
        assert [finding.title for finding in run.bottlenecks() if finding.rule == "denormals"] == []


def test_a_product_with_a_number_is_one_call(tmp_path: Path) -> None:
    # The backward pass of a cube multiplies by numbers too: each is an op that only calls itself, in microseconds.
    values = torch.rand(1024, 384, requires_grad=True)
    with neuron_profile(str(tmp_path / "run")) as profile:
        for _ in range(6):
            (values**3).sum().backward()
            profile.step()
    with open_run(profile.directory) as run:
        handed_on = run.sql(
            """SELECT count(*) AS calls FROM events o JOIN events i ON i.parent_id = o.event_id AND i.rank = o.rank AND i.name = o.name
            WHERE o.name = 'aten::mul'"""
        ).rows()
        assert handed_on[0]["calls"] >= 5
        assert [finding.title for finding in run.bottlenecks() if finding.rule == "denormals"] == []


def test_every_case_has_its_line_and_there_are_enough() -> None:
    assert len(PLANTED) >= 30
    assert all(case.lines and case.kinds for case in PLANTED.values())
    assert len(clean_cases()) >= 12
    assert all(case.is_clean for case in clean_cases())


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        # The profiler's own documentation shows this run as one that waits for its DataLoader.
        ("nvidia/kineto_resnet50_v100_2021a.pt.trace.json.gz", "data_loader_stall"),
        ("amd/tl_mi300_resnet_act_checkpoint.json.gz", "recompute"),
        ("nvidia/tl_h100_Falconsai_nsfw_image_detection__1016002.json.gz", "tiny_ops"),
    ],
)
def test_real_device_traces(name: str, rule: str) -> None:
    from explorer.collectors.import_trace import cached_run

    with open_run(cached_run(str(trace(name)))) as run:
        findings = run.bottlenecks()
        assert [item for item in findings.not_checked if "failed" in item.reason] == []
        assert rule in [finding.rule for finding in findings[:3]], [f.rule for f in findings]
        check_evidence(run, findings)


def test_a_loop_over_large_work_is_left_alone(tmp_path: Path) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(512, 1024), torch.nn.GELU(), torch.nn.Linear(1024, 512))
    inputs, outputs = torch.randn(16, 128, 512), torch.empty(16, 128, 512)
    with neuron_profile(str(tmp_path / "run")) as profile, torch.inference_mode():
        for _ in range(3):
            for i in range(16):
                outputs[i] = model(inputs[i])
            profile.step()
    with open_run(profile.directory) as run:
        assert [
            (finding.title, finding.evidence, finding.saving)
            for finding in run.bottlenecks()
            if finding.rule == "row_loop"
        ] == []
