"""Matching source lines through an edit: the lines of one version of a file found again in another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from difflib import SequenceMatcher

ALIKE = 0.6
"""A changed line is the same line edited when at least this much of its text is (ratio of difflib)."""


SAME_FILE = 0.5
"""A file under another name is the same one when both texts have at least this much of their lines in common."""


def line_map(before: str, after: str) -> dict[int, int]:
    """Line numbers (from 1) of the old text to those of the new one, for unchanged and recognisably edited lines."""
    old, new = before.splitlines(), after.splitlines()
    mapping: dict[int, int] = {}
    for tag, a0, a1, b0, b1 in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            mapping.update((a0 + i + 1, b0 + i + 1) for i in range(a1 - a0))
        elif tag == "replace":
            _edited(old, new, range(a0, a1), range(b0, b1), mapping)
    return mapping


def moved_files(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, str]:
    """Files of the old texts that are not among the new ones, by the new file each has become: the one that shares the largest
    part of its lines, at least half of them. Each new file is taken once."""
    lost = {file: Counter(text.splitlines()) for file, text in before.items() if file not in after}
    new = {file: Counter(text.splitlines()) for file, text in after.items() if file not in before}
    alike = sorted(
        (-_shared(a_lines, b_lines), a, b) for a, a_lines in lost.items() for b, b_lines in new.items()
    )
    moved: dict[str, str] = {}
    for ratio, a, b in alike:
        if -ratio >= SAME_FILE and a not in moved and b not in moved.values():
            moved[a] = b
    return moved


def _shared(a: Counter[str], b: Counter[str]) -> float:
    """The part of both texts' lines that both have, 0 to 1."""
    return 2 * (a & b).total() / max(1, a.total() + b.total())


def _edited(old: list[str], new: list[str], a: range, b: range, mapping: dict[int, int]) -> None:
    """Pair edited lines in order, each with the most similar of the new ones that are left after it."""
    floor = b.start
    for i in a:
        best, score = -1, ALIKE
        for j in range(floor, b.stop):
            ratio = SequenceMatcher(None, old[i].strip(), new[j].strip(), autojunk=False).ratio()
            if ratio > score:
                best, score = j, ratio
        if best >= 0:
            mapping[i + 1] = best + 1
            floor = best + 1
