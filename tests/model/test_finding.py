"""The JSON contract of findings."""

import json

import pytest

from explorer.model.finding import Evidence, Finding, FindingLine, Findings, NotChecked, Saving, severity_of


@pytest.mark.parametrize(
    ("share", "severity"),
    [(0.5, "high"), (0.10, "high"), (0.0999, "medium"), (0.03, "medium"), (0.0299, "low")],
)
def test_severity_limits(share: float, severity: str) -> None:
    assert severity_of(share) == severity


def test_document_has_the_published_keys() -> None:
    finding = Finding(
        id="host_sync/6021",
        rule="host_sync",
        title="t",
        severity="high",
        confidence="high",
        saving=Saving(1, 2, 3),
        saving_share=0.2,
        lines=(FindingLine(6021, "train.py", 57, "train_step", "total += loss.item()", 5, 0.2),),
        evidence=(Evidence("5 calls", "SELECT 5", ("0:1234",)),),
        advice="a",
    )
    findings = Findings("r", 10, 2, 1, (finding,), (NotChecked("x", "y"),))
    document = json.loads(findings.to_json())
    assert list(document) == [
        "schema",
        "run",
        "step_ns",
        "steps",
        "ranks",
        "recorded_step_ns",
        "health",
        "findings",
        "not_checked",
    ]
    assert document["schema"] == "neuron-explorer/findings/1"
    assert document["findings"][0]["saving_ns"] == {"low": 1, "expected": 2, "high": 3}
    assert document["findings"][0]["lines"][0]["line"] == 57
    assert document["findings"][0]["evidence"] == [
        {"statement": "5 calls", "sql": "SELECT 5", "events": ["0:1234"]}
    ]
    assert document["not_checked"] == [{"rule": "x", "reason": "y"}]
    assert list(findings) == [findings[0]]
