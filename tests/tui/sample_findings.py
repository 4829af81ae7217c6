"""Findings written by hand, so that pictures change when the screens do and not when a rule learns something."""

from __future__ import annotations

from explorer.model.finding import Evidence, Finding, FindingLine, Findings, NotChecked, Saving
from tests.tui.sample_run import LINES, SOURCE, site


def _line(name: str, time_ns: int) -> FindingLine:
    number, function = LINES[name]
    code = SOURCE.splitlines()[number - 1].strip()
    return FindingLine(site(name), "train.py", number, function, code, time_ns, time_ns / 20_000_000)


def sample_findings() -> Findings:
    """Two findings and three rules that could not be checked."""
    return Findings(
        run="sample",
        step_ns=20_000_000,
        steps=5,
        ranks=2,
        findings=(
            Finding(
                id="data_loader_stall/1",
                rule="data_loader_stall",
                title="The step waits for data",
                severity="high",
                confidence="high",
                saving=Saving(2_400_000, 4_800_000, 5_000_000, "replay"),
                saving_share=0.24,
                lines=(_line("collate", 2_500_000), _line("loader", 5_000_000)),
                evidence=(
                    Evidence(
                        "One batch per step takes 5 ms of it.",
                        "SELECT sum(duration_ns) FROM events WHERE category = 'data'",
                        ("0:2", "0:66"),
                    ),
                ),
                advice="Load in worker processes, or do this work once before training.",
                steps=(0, 1, 2, 4),
                caveats=("Workers need free CPU cores.",),
            ),
            Finding(
                id="host_sync/2",
                rule="host_sync",
                title="The host waits for the device",
                severity="medium",
                confidence="medium",
                saving=Saving(600_000, 900_000, 1_200_000),
                saving_share=0.045,
                lines=(_line("item", 1_000_000),),
                evidence=(Evidence("item() waits 3 ms per step.", "SELECT 3", ()),),
                advice="Keep the loss on the device and read it every hundred steps.",
            ),
        ),
        not_checked=(
            NotChecked("io_in_step", "the run holds no file input or output events"),
            NotChecked("straggler", "the run holds no communication"),
            NotChecked("slow_link", "the run holds no communication"),
        ),
    )
