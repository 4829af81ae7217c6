"""The few numbers that say how a run does, each with a sentence that says what it means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from explorer.analysis.phrase import duration_text
from explorer.analysis.step_parts import StepStory, step_stories, worst_story

if TYPE_CHECKING:
    from explorer.analysis.run import Run


@dataclass(frozen=True)
class KeyFigure:
    """A number and what it means. `tone`: good, bad or plain."""

    title: str
    value: str
    sentence: str
    tone: str = "plain"


@dataclass(frozen=True)
class Overview:
    """The first screen's answer but for the findings."""

    stories: tuple[StepStory, ...]
    worst: StepStory | None
    figures: tuple[KeyFigure, ...]


def overview(run: Run) -> Overview:
    """Stories of every rank and device, and the key figures of the slowest."""
    stories = step_stories(run)
    worst = worst_story(stories)
    return Overview(tuple(stories), worst, tuple(_figures(worst, stories)) if worst else ())


def _figures(story: StepStory, stories: list[StepStory]) -> list[KeyFigure]:
    figures = []
    ranks = {each.rank for each in stories}
    what, whole = ("Step", "the steps") if story.has_steps else ("Recording", "the recording")
    if story.has_steps:
        spread = (story.longest_ns - story.shortest_ns) / story.median_ns if story.median_ns else 0.0
        sentence = (
            f"Median of {story.count} steps, {duration_text(story.shortest_ns)} to {duration_text(story.longest_ns)}."
            if story.count > 1
            else "The only complete step."
        )
        tone = "bad" if spread > 0.5 else "plain"
    else:
        sentence, tone = "The whole recording: it has no steps.", "plain"
    if len(ranks) > 1:
        sentence += f" Slowest of {len(ranks)} ranks: {story.rank}."
    figures.append(KeyFigure(what, duration_text(story.median_ns), sentence, tone))
    shares = {part.key: part for part in story.parts}
    if story.device == "cpu":
        ops = shares.get("op")
        figures.append(
            KeyFigure(
                "In ops",
                _percent(ops.share if ops else 0.0),
                f"of {whole}: framework ops run. The rest is what surrounds them.",
                "good" if ops and ops.share > 0.9 else "bad" if not ops or ops.share < 0.6 else "plain",
            )
        )
    else:
        idle = shares.get("idle")
        busy = 1 - (idle.share if idle else 0.0)
        figures.append(
            KeyFigure(
                "Device busy",
                _percent(busy),
                f"of {whole}: {story.device} works. Idle, it waits for the host or for data.",
                "good" if busy > 0.9 else "bad" if busy < 0.6 else "plain",
            )
        )
    largest = max(
        (p for p in story.parts if p.key not in ("compute", "op")), key=lambda p: p.duration_ns, default=None
    )
    if largest is not None:
        figures.append(
            KeyFigure(
                f"Lost to {largest.label}",
                f"{duration_text(largest.duration_ns)}",
                f"{_percent(largest.share)} of {whole}. {largest.meaning}",
                "bad" if largest.share > 0.1 else "plain",
            )
        )
    return figures


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.1 or share == 0 else f"{100 * share:.1f} %"
