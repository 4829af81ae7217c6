"""Schedules read from who sends to whom in which order."""

from __future__ import annotations

import pytest

from explorer.analysis.ranks.pipeline_schedule import recognise, stage_orders


def messages(text: dict[int, str]) -> dict[int, list[tuple[str, int]]]:
    """'S1 R2' -> [('send', 1), ('recv', 2)]"""
    return {
        rank: [("send" if word[0] == "S" else "recv", int(word[1:])) for word in words.split()]
        for rank, words in text.items()
    }


@pytest.mark.parametrize(
    ("step", "order", "wanted"),
    [
        ({0: "S1 S1 S1 S1 R1 R1 R1 R1", 1: "R0 R0 R0 R0 S0 S0 S0 S0"}, (0, 1), ("GPipe", 4, 1)),
        (
            {0: "S1 S1 S1 R1 R1 R1", 1: "R0 S2 R0 S2 R2 S0 R0 S2 R2 S0 R2 S0", 2: "R1 S1 R1 S1 R1 S1"},
            (0, 1, 2),
            ("1F1B", 3, 1),
        ),
        # Two chunks per rank, recorded from torch.distributed.pipelining with two microbatches' worth of wraps.
        (
            {
                0: "S1 S1 R2 S1 R2 S1 R1 S2 R1 S2 R1 R1",
                1: "R0 S2 R0 S2 R0 S2 R0 S2 R2 S0 R2 S0 R2 S0 R2 S0",
                2: "R1 S0 R1 S0 R1 S1 R1 S1 R0 S1 R0 S1",
            },
            (0, 1, 2),
            ("interleaved 1F1B", 2, 2),
        ),
        # Stages need not follow the ranks' numbers.
        ({5: "S3 S3 R3 R3", 3: "R5 R5 S5 S5"}, (5, 3), ("GPipe", 2, 1)),
    ],
)
def test_schedules(step: dict[int, str], order: tuple[int, ...], wanted: tuple[str, int, int]) -> None:
    found = messages(step)
    assert stage_orders(found) == [order]
    assert recognise(found, order) == wanted


def test_a_ring_exchange_is_no_pipeline() -> None:
    ring = messages({0: "S1 R2", 1: "S2 R0", 2: "S0 R1"})
    assert all(recognise(ring, order) is None for order in stage_orders(ring))


def test_ranks_that_only_talk_to_the_first_are_no_pipeline() -> None:
    gathered = messages({0: "R1 R2", 1: "S0", 2: "S0"})
    assert all(recognise(gathered, order) is None for order in stage_orders(gathered))
