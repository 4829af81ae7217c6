"""Rules that were not checked are told by what the run lacks."""

from explorer.analysis.rule import NEEDS
from explorer.analysis.unchecked import Unchecked, unchecked
from explorer.model.finding import NotChecked


def test_without_a_device_all_that_needs_one_is_one_group() -> None:
    items = [
        NotChecked("copies", NEEDS["device"]),
        NotChecked("matmul", NEEDS["kernels"]),
        NotChecked("syncs", f"{NEEDS['device']}: on a CPU the host has nothing to wait for"),
        NotChecked("late", NEEDS["ranks"]),
        NotChecked("dma", NEEDS["neuron"]),
        NotChecked("loads", NEEDS["neuron_system"]),
    ]
    assert unchecked(items) == (
        Unchecked("5 rules need a device: none in this run", ("copies", "matmul", "syncs", "dma", "loads")),
        Unchecked("1 rule needs several ranks: this run holds one", ("late",)),
    )


def test_with_a_device_a_profile_of_it_is_what_is_missing() -> None:
    items = [NotChecked("dma", NEEDS["neuron"]), NotChecked("spill", NEEDS["neuron"])]
    assert unchecked(items) == (
        Unchecked("2 rules need a Neuron device profile: none in this run", ("dma", "spill")),
    )


def test_a_reason_of_its_own_stands_as_it_is() -> None:
    items = [
        NotChecked("growth", "the run holds too few steps to tell growth from warming up"),
        NotChecked("pressure", NEEDS["memory_events"]),
    ]
    assert [group.sentence for group in unchecked(items)] == [
        "1 rule: the run holds too few steps to tell growth from warming up",
        "1 rule needs allocations: none in this run; record with --memory",
    ]
    assert unchecked([]) == ()


def test_every_need_has_its_sentence() -> None:
    for reason in NEEDS.values():
        (group,) = unchecked([NotChecked("rule", reason)])
        assert group.sentence.startswith("1 rule needs ")
