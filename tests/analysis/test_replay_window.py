"""A long recording is replayed on steps that stand for all, and says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from explorer.analysis import replay_window as replayed_steps
from explorer.analysis.finding_what_if import LADDER, FindingReplays
from explorer.analysis.findings import find
from explorer.analysis.replay_window import ReplayWindow, replay_window
from explorer.analysis.rules import exposed_copies
from explorer.analysis.run import Run
from explorer.analysis.step_scope import find_scope
from explorer.model.errors import UsageError
from tests.analysis.run_builder import RunBuilder, at


def copies(directory: Path, lengths: list[float], calls: list[int]) -> Run:
    """Steps of 1,000 µs in which a copy that nothing overlaps takes `lengths` µs and the host waits for it; `calls` ops
    more are called in each step."""
    run = RunBuilder(directory)
    stream = run.stream()
    line = run.line(5, "x = batch.to(device)")
    run.steps(len(lengths), 1000)
    for number, (length, more) in enumerate(zip(lengths, calls, strict=True)):
        begin = 1000.0 * number
        run.state(line, begin, 1000)
        call = run.event("runtime", "cudaMemcpyAsync", begin + 10, 5, site=line)
        run.event(
            "copy",
            "Memcpy HtoD (Pageable -> Device)",
            begin + 20,
            length,
            track=stream,
            site=line,
            launch_id=call,
        )
        run.event("sync", "cudaStreamSynchronize", begin + 20, length + 5, site=line)
        for extra in range(more):
            run.op("aten::add", begin + length + 30 + extra, 1, site=line)
    return run.open()


def test_a_short_recording_is_replayed_whole(tmp_path: Path) -> None:
    run = copies(tmp_path / "run", [400.0] * 6, [10] * 6)
    assert replay_window(run.engine, find_scope(run.engine)) is None


def test_the_steps_that_are_most_like_all_stand_for_all(tmp_path: Path) -> None:
    run = copies(tmp_path / "run", [400.0] * 9, [0, 0, 0, 14, 8, 8, 8, 20, 20])
    scope = find_scope(run.engine)
    # 105 events in 9 steps, 11.67 in each: of three neighbours those of steps 4 to 6 and of 3 to 5 hold 33 and 39.
    window = replay_window(run.engine, scope, most=50, window=36)
    assert window == ReplayWindow((4, 5, 6), scope.spans[4:7], 9)
    assert window.span == (at(4000), at(7000))
    assert window.sentence == (
        "The recording is long: savings were replayed on steps 4 to 6, which stand for all 9; all else is of all."
    )
    one = replay_window(run.engine, scope, most=50, window=1)
    assert one is not None
    assert one.numbers == (4,)
    assert "replayed on step 4, which stands for all 9" in one.sentence


def test_of_equal_steps_the_middle_ones_stand_for_all(tmp_path: Path) -> None:
    run = copies(tmp_path / "run", [400.0] * 9, [5] * 9)
    window = replay_window(run.engine, find_scope(run.engine), most=50, window=24)
    assert window is not None
    assert window.numbers == (3, 4, 5)


def test_steps_too_large_for_a_replay_stand_for_nothing(tmp_path: Path) -> None:
    run = copies(tmp_path / "run", [400.0] * 3, [20] * 3)
    window = replay_window(run.engine, find_scope(run.engine), most=22, window=10)
    assert window == ReplayWindow((), (), 3)


def found(run: Run, monkeypatch: pytest.MonkeyPatch, most: int, window: int) -> dict[str, object]:
    def chosen(engine, scope):  # type: ignore[no-untyped-def]
        return replay_window(engine, scope, most=most, window=window)

    monkeypatch.setattr("explorer.analysis.findings.replay_window", chosen)
    findings = find(run, rules=[exposed_copies.RULE])
    (copy,) = findings
    return {
        "saving": copy.saving.expected,
        "basis": copy.saving.basis,
        "said": [caveat for caveat in copy.caveats if caveat.startswith("The recording is long")],
        "doubts": [doubt for doubt in findings.doubts if doubt.startswith("The recording is long")],
    }


def test_savings_of_a_window_are_those_of_the_whole_where_steps_are_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = copies(tmp_path / "run", [400.0] * 9, [5] * 9)
    whole = found(run, monkeypatch, most=1000, window=1000)
    part = found(run, monkeypatch, most=50, window=24)
    sentence = "The recording is long: savings were replayed on steps 3 to 5, which stand for all 9; all else is of all."
    # Of 400 µs a fifth remains.
    assert whole == {"saving": 320_000, "basis": "replay", "said": [], "doubts": []}
    assert part == {"saving": 320_000, "basis": "replay", "said": [sentence], "doubts": [sentence]}


def test_what_the_replayed_steps_lack_keeps_its_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The steps in the middle hardly copy: a replay of them would say that nothing is to be saved.
    run = copies(tmp_path / "run", [400.0] * 3 + [1.0] * 3 + [400.0] * 3, [5] * 9)
    part = found(run, monkeypatch, most=50, window=24)
    assert part["basis"] == "bound"
    assert part["saving"] == round(0.8 * round((6 * 400_000 + 3 * 1_000) / 9))


def test_where_nothing_can_be_replayed_savings_are_bounds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = copies(tmp_path / "run", [400.0] * 3, [20] * 3)
    none = found(run, monkeypatch, most=22, window=10)
    assert none["basis"] == "bound"
    assert none["said"] == [
        "The recording is long and no few of its steps stand for all: nothing was replayed, savings are bounds."
    ]


def test_the_limits_bound_memory() -> None:
    assert replayed_steps.WINDOW_EVENTS <= replayed_steps.MOST_EVENTS == 2_000_000


def test_a_finding_is_tried_out_on_the_same_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = copies(tmp_path / "run", [400.0] * 9, [5] * 9)
    (copy,) = find(run, rules=[exposed_copies.RULE])
    whole = FindingReplays(run).predict(copy, len(LADDER) - 1)
    monkeypatch.setattr(
        "explorer.analysis.finding_what_if.replay_window",
        lambda engine, scope: replay_window(engine, scope, most=50, window=24),
    )
    part = FindingReplays(run).predict(copy, len(LADDER) - 1)
    assert (whole.prediction.steps, part.prediction.steps) == (9, 3)
    assert whole.saving_share == part.saving_share == 0.99
    monkeypatch.setattr(
        "explorer.analysis.finding_what_if.replay_window",
        lambda engine, scope: replay_window(engine, scope, most=20, window=5),
    )
    run = copies(tmp_path / "large", [400.0] * 3, [20] * 3)
    with pytest.raises(UsageError, match="nothing was replayed"):
        FindingReplays(run).predict(copy, len(LADDER) - 1)
