"""The tutorial's programs: each runs, learns the same, and its first finding names what the next one changes."""

from __future__ import annotations

import difflib
import itertools
import os
import re
import runpy
import shutil
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = [ROOT / "examples" / "tutorial" / f"step{number}.py" for number in range(6)]
STEPS = 10

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.capture


def changed_lines(before: Path, after: Path) -> set[int]:
    """Numbers of the lines of `before` that the next program changes or drops."""
    lines: set[int] = set()
    matcher = difflib.SequenceMatcher(
        None, before.read_text().splitlines(), after.read_text().splitlines(), autojunk=False
    )
    for kind, start, end, _, _ in matcher.get_opcodes():
        if kind != "equal":
            # A line put in changes those around it: what it wraps or follows.
            lines |= set(range(start + 1, end + 1)) or {start, start + 1}
    return lines


@pytest.fixture(scope="module")
def stages(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Any, list[float]]]:
    """Findings and losses of each program, recorded in this process."""
    from explorer import neuron_profile, open_run

    folder = tmp_path_factory.mktemp("tutorial")
    threads, found = torch.get_num_threads(), []
    torch.set_num_threads(1)
    try:
        for number, program in enumerate(PROGRAMS):
            # A folder each: one process remembers the text of a file that it has seen.
            place = folder / f"step{number}"
            place.mkdir()
            shutil.copy(program, place / "train.py")
            names = runpy.run_path(str(place / "train.py"), run_name="tutorial")
            torch.manual_seed(0)
            model = names["Router"]()
            loader = names["DataLoader"](names["Tickets"](512), batch_size=32, shuffle=True, drop_last=True)
            with neuron_profile(folder / f"run{number}", user_code=[str(place / "*")]) as recording:
                losses = names["train"](model, loader, STEPS, folder)
            with open_run(recording.directory) as run:
                found.append((run.bottlenecks(), losses))
    finally:
        torch.set_num_threads(threads)
    return found


WANTED = ["data_loader_stall", "unfused_attention", "io_in_step", "row_loop", "single_tensor_optimizer"]


@pytest.mark.parametrize("number", range(5))
def test_first_finding_names_what_the_next_program_changes(
    number: int, stages: list[tuple[Any, list[float]]]
) -> None:
    """First, but where other programs keep the processor busy: there the order by cost is theirs to upset. How long the
    checkpoint takes depends on the disk, so it and the loop over rows may change places.
    """
    findings, _ = stages[number]
    busy = any("Other programs used the processor" in caveat for caveat in findings[0].caveats)
    places = len(findings) if busy else 2 if WANTED[number] in ("io_in_step", "row_loop") else 1
    wanted = [finding for finding in findings[:places] if finding.rule == WANTED[number]]
    assert wanted, [finding.title for finding in findings]
    named = {line.line for line in wanted[0].lines if os.path.basename(line.file) == "train.py"}
    if WANTED[number] == "single_tensor_optimizer":
        # The line that costs is the optimizer's step; the advice names what the next program builds it with.
        code = PROGRAMS[number].read_text().splitlines()
        assert [code[line - 1].strip() for line in named] == ["optimizer.step()"]
        assert "fused=True" in wanted[0].advice
        assert "fused=True" in PROGRAMS[number + 1].read_text()
        return
    changed = changed_lines(PROGRAMS[number], PROGRAMS[number + 1])
    code = PROGRAMS[number].read_text().splitlines()
    # The line itself, or the call of the small function that it is.
    calls = {at for at in changed for line in wanted[0].lines if f" {line.function}(" in code[at - 1]}
    assert named & changed or calls


def test_nothing_large_is_left_at_the_end(stages: list[tuple[Any, list[float]]]) -> None:
    """Putting a batch together stays, and one checkpoint after training: neither is a tenth of the step."""
    large = [finding.rule for finding in stages[5][0] if finding.severity == "high"]
    assert not set(large) & set(WANTED)


def test_every_program_learns_the_same(stages: list[tuple[Any, list[float]]]) -> None:
    first = stages[0][1]
    assert len(first) == STEPS
    for _, losses in stages[1:]:
        assert losses == pytest.approx(first, rel=1e-3)


def test_page_is_complete_and_shows_the_programs_as_they_are() -> None:
    page = (ROOT / "docs" / "tutorial.md").read_text()
    assert "{{" not in page
    for before, after in itertools.pairwise(PROGRAMS):
        added = set(after.read_text().splitlines()) - set(before.read_text().splitlines())
        missing = [line for line in added if f"+{line}" not in page]
        assert not missing, f"run docs/make_tutorial.py: {after.name} has {missing[0]!r}"
    assert float(re.findall(r"\| ([\d.]+) x \|", page)[-1]) >= 3
