"""What has no input shapes is said to be left out."""

from __future__ import annotations

from pathlib import Path

import pytest

from explorer.analysis.shape_coverage import without_shapes
from explorer.cli.main import main
from tests.analysis.run_builder import RunBuilder

REST = "the others have no shapes; record with --shapes all (record_shapes=True in a program) for the rest."


def builder_of(directory: Path, with_shapes: list[bool], steps: bool) -> RunBuilder:
    run = RunBuilder(directory)
    if steps:
        run.steps(len(with_shapes), 100)
    for number, known in enumerate(with_shapes):
        run.op(
            "aten::mm",
            100 * number,
            50,
            shapes="[[8, 8], [8, 8]]" if known else None,
            dtypes='["float", "float"]',
        )
    return run


@pytest.mark.parametrize(
    ("with_shapes", "steps", "said"),
    [
        ([False, True, True, False, False], True, f"Covers 2 of 5 steps, from 1 to 2: {REST}"),
        ([True, True], True, ""),
        ([False, False], True, ""),
        ([True, False, False, False], False, f"Covers 25% of the ops: {REST}"),
        ([True, True], False, ""),
    ],
)
def test_steps_without_shapes(tmp_path: Path, with_shapes: list[bool], steps: bool, said: str) -> None:
    with builder_of(tmp_path / "run", with_shapes, steps).open() as run:
        assert without_shapes(run.engine) == said


def test_roofline_says_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = builder_of(tmp_path / "run", [False, True], True).write()
    assert main(["roofline", directory]) == 0
    assert "Covers 1 of 2 steps, step 1: the others have no shapes" in " ".join(
        capsys.readouterr().out.split()
    )
