"""Budgets: what fails, what passes, what cannot be checked."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from explorer.analysis.budget import Budget, Outcome, check, load_budget, size_bytes
from explorer.analysis.run import open_run
from explorer.model.errors import InputError, UsageError
from explorer.report.junit import junit_xml
from tests.analysis.diff.test_comparison import write


def test_a_regression_fails_only_beyond_noise(tmp_path: Path) -> None:
    before, slower = open_run(write(tmp_path / "a", 1000, "x")), open_run(write(tmp_path / "b", 1300, "x"))
    budget = Budget(max_regression=0.05)
    assert [o.passed for o in check(slower, budget, before)] == [False]
    assert [o.passed for o in check(before, budget, slower)] == [True]
    assert [o.passed for o in check(slower, Budget(max_regression=0.3), before)] == [True]


def held_up(tmp_path: Path, before_percent: float, after_percent: float, length: int) -> Outcome:
    before = open_run(write(tmp_path / "a", 1000, "x", core_percent=before_percent))
    after = open_run(write(tmp_path / "b", length, "x", core_percent=after_percent))
    (outcome,) = check(after, Budget(max_regression=0.05), before)
    return outcome


def test_what_other_programs_can_explain_is_no_regression(tmp_path: Path) -> None:
    # With half of a core everything takes up to twice as long.
    outcome = held_up(tmp_path, 100, 50, 1900)
    assert outcome.passed is None
    assert outcome.message.endswith(
        "allowed +5.0%; other programs used the processor, this one had 50 % of a core, which alone can make it 2.0 times as long:"
        " record again on a quiet machine"
    )


def test_what_other_programs_cannot_explain_is_a_regression(tmp_path: Path) -> None:
    outcome = held_up(tmp_path, 100, 50, 2600)
    assert outcome.passed is False
    assert outcome.message.endswith("50 % of a core, which does not explain all of it")


def test_programs_that_held_up_both_explain_nothing(tmp_path: Path) -> None:
    assert held_up(tmp_path, 50, 50, 1300).passed is False


def test_a_baseline_that_was_held_up_can_hide_a_regression(tmp_path: Path) -> None:
    outcome = held_up(tmp_path, 50, 100, 1000)
    assert outcome.passed is True
    assert outcome.message.endswith(
        "other programs used the processor while the baseline was recorded, it had 50 % of a core: its steps were longer for that,"
        " and a growth can hide behind them"
    )


def test_limits_of_time_and_shares_say_that_others_took_the_processor(tmp_path: Path) -> None:
    run = open_run(write(tmp_path / "a", 1_000_000, "x", core_percent=50))
    step = check(run, Budget(max_step_ms=0.6, min_compute_share=1.1))
    assert [outcome.passed for outcome in step] == [None, False]
    assert "which alone can make it 2.0 times as long" in step[0].message
    assert step[1].message.endswith("shares are less certain, record again on a quiet machine")
    assert [outcome.passed for outcome in check(run, Budget(max_step_ms=0.4))] == [False]


@pytest.mark.parametrize(
    ("steps", "shapes", "reason"), [(3, "[[8, 8]]", "fewer than 5"), (10, "[[9, 9]]", "not comparable")]
)
def test_what_cannot_be_compared_does_not_fail(tmp_path: Path, steps: int, shapes: str, reason: str) -> None:
    before = open_run(write(tmp_path / "a", 1000, "x"))
    after = open_run(write(tmp_path / "b", 5000, "x", steps=steps, shapes=shapes))
    outcome = check(after, Budget(max_regression=0.05), before)[0]
    assert outcome.passed is None
    assert reason in outcome.message


def test_step_and_memory_limits(tmp_path: Path) -> None:
    run = open_run(write(tmp_path / "a", 1_000_000, "x"))
    assert [o.passed for o in check(run, Budget(max_step_ms=2.0))] == [True]
    assert [o.passed for o in check(run, Budget(max_step_ms=0.5))] == [False]
    assert check(run, Budget(max_memory=1))[0].passed is None


def test_nothing_to_check_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nothing to check"):
        check(open_run(write(tmp_path / "a", 10, "x")), Budget())


def test_rules_from_files(tmp_path: Path) -> None:
    project = tmp_path / "pyproject.toml"
    project.write_text(
        '[tool.neuron-explorer.check]\nmax-regression = 0.05\nmax-memory = "2 GB"\nforbidden = ["host_sync"]\n'
    )
    assert load_budget(str(project)) == Budget(
        max_regression=0.05, max_memory=2 * 10**9, forbidden=("host_sync",)
    )
    plain = tmp_path / "budget.toml"
    plain.write_text("max_step_ms = 3\n")
    assert load_budget(str(plain)) == Budget(max_step_ms=3.0)
    plain.write_text("max_stepms = 3\n")
    with pytest.raises(InputError, match="unknown rule 'max_stepms'"):
        load_budget(str(plain))
    plain.write_text("= broken")
    with pytest.raises(InputError, match="cannot be read"):
        load_budget(str(plain))
    with pytest.raises(InputError, match="cannot be read"):
        load_budget(str(tmp_path / "nothing.toml"))


@pytest.mark.parametrize(
    ("text", "size"), [("2 GB", 2 * 10**9), ("512MiB", 512 * 2**20), ("7", 7), (5, 5), ("1.5 kb", 1500)]
)
def test_sizes(text: object, size: int) -> None:
    assert size_bytes(text) == size


def test_junit_counts_and_stays_well_formed() -> None:
    text = junit_xml(
        [Outcome("a", True, ""), Outcome("b<", False, "x\x00 & <y>"), Outcome("c", None, "no shapes")],
        "run\x1b[0m",
    )
    suite = ElementTree.fromstring(text)
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("3", "1", "1")
    assert [case.get("name") for case in suite] == ["a", "b<", "c"]
    assert suite[1][0].get("message") == "x & <y>"
