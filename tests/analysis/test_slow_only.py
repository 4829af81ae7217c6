"""Programs for the blind trial hold the slow version alone, and know where its fault is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("torch")

from benchmarks.planted.cases import Case, planted_cases
from benchmarks.planted.slow_only import slow_only
from benchmarks.planted.trial import score

SOURCE = '''"""Each row is normalised by itself."""

import torch
import math

KIND = "row_loop"


def fixed(x):
    return x / math.sqrt(2)


class Layer:
    def __init__(self, slow):
        self.ready = torch.ones(3)
        self.slow = slow

    def forward(self, x):
        if not self.slow:
            return fixed(x) * self.ready
        return [
            row / row.norm()  # fault
            for row in x
        ]


def program(slow, steps, step):
    layer = Layer(slow)
    unused = torch.zeros(1)
    for _ in range(steps):
        y = layer.forward(torch.ones(4, 3)) if slow else None  # a comment
        step()
'''

EXPECTED = """import torch

class Layer:

    def __init__(self):
        pass

    def forward(self, x):
        return [row / row.norm() for row in x]

def main(steps, step):
    layer = Layer()
    unused = torch.zeros(1)
    for _ in range(steps):
        y = layer.forward(torch.ones(4, 3))
        step()


if __name__ == '__main__':
    from explorer import neuron_profile
    torch.set_num_threads(1)
    with neuron_profile('run') as profile:
        main(7, profile.step)
"""


def test_the_repaired_branch_and_all_that_only_it_used_are_gone() -> None:
    fault = next(number for number, text in enumerate(SOURCE.splitlines(), 1) if "# fault" in text)
    found = slow_only(SOURCE, (fault,), steps=7)
    assert found.text == EXPECTED
    assert [EXPECTED.splitlines()[line - 1].strip() for line in found.lines] == [
        "return [row / row.norm() for row in x]"
    ]
    assert [EXPECTED.splitlines()[line - 1].strip() for line in found.repaired] == [
        "y = layer.forward(torch.ones(4, 3))"
    ]


@pytest.mark.parametrize("case", planted_cases(), ids=lambda case: case.name)
def test_no_planted_program_gives_itself_away(case: Case) -> None:
    found = slow_only(Path(case.file).read_text(encoding="utf-8"), case.lines, steps=3)
    assert found.lines
    text = found.text.replace("default_rng", "")
    assert not any(word in text for word in ("slow", "fault", "fixed", "KIND", "#"))
    compile(found.text, case.name, "exec")


def test_a_trial_is_scored_by_kind_and_line(tmp_path: Path) -> None:
    key = tmp_path / "key.json"
    rows = {
        number: {
            "program": "a",
            "kinds": ["row_loop"],
            "file": "train.py",
            "lines": [7, 8],
            "repaired": [8, 9],
        }
        for number in ("1", "2", "3")
    }
    key.write_text(json.dumps(rows))
    (tmp_path / "1").mkdir()
    call = {"tool": "bottlenecks", "arguments": {}, "answer": "x" * 80}
    (tmp_path / "1" / "session.jsonl").write_text(json.dumps(call) + "\n")
    answers = {
        "1": {"kind": "row_loop", "file": "train.py", "line": 8},
        "2": {"kind": "row_loop", "file": "train.py", "line": 9},
    }
    text = score(answers, key, tmp_path)
    assert "1 calls, 20 tokens" in text.splitlines()[0]
    assert text.splitlines()[-1] == (
        "fault 2 of 3, marked line 1, marked line or one that the repair changes 2"
    )
