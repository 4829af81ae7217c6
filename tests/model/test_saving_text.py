"""A saving in words: no number stands beside a range that it contradicts."""

from dataclasses import replace

import pytest

from explorer.model.finding import Finding, Saving
from explorer.model.saving_text import saving_text

MS = 1_000_000
FINDING = Finding(
    id="a/b",
    rule="a",
    title="t",
    severity="high",
    confidence="high",
    saving=Saving(0, 0, 0),
    saving_share=0.308,
    lines=(),
    evidence=(),
    advice="",
    steps=(1, 2),
)


@pytest.mark.parametrize(
    ("saving", "text"),
    [
        (
            Saving(4_280_000, 8_570_000, 8_640_000, "replay"),
            "4.28 ms to 8.64 ms of each step (expected 8.57 ms, 30.8 %)",
        ),
        (Saving(0, 2 * MS, 2 * MS, "replay"), "0 to 2.00 ms of each step (expected 2.00 ms, 30.8 %)"),
        (Saving(2 * MS, 2 * MS, 2 * MS, "replay"), "2.00 ms of each step (30.8 %)"),
        (Saving(1_999_999, 2 * MS, 2_000_001, "replay"), "2.00 ms of each step (30.8 %)"),
        (
            Saving(3_020_000, 6_050_000, 6_240_000, "bound"),
            "at most 6.24 ms of each step (expected 6.05 ms, 30.8 %)",
        ),
        (Saving(2_630_000, 3_060_000, 3_060_000, "bound"), "at most 3.06 ms of each step (30.8 %)"),
        (Saving(0, 0, 0, "none"), ""),
    ],
)
def test_range_and_expectation(saving: Saving, text: str) -> None:
    assert saving_text(replace(FINDING, saving=saving)) == text


def test_a_recording_without_steps_and_trimmed_numbers() -> None:
    finding = replace(FINDING, saving=Saving(MS, 2 * MS, 3 * MS, "replay"), steps=())
    assert saving_text(finding, trim=True) == "1 ms to 3 ms of the recording (expected 2 ms, 30.8 %)"
