"""The top of the report: what the run is, where a step's time goes, the key figures."""

from __future__ import annotations

from explorer.analysis.key_figures import Overview
from explorer.analysis.phrase import duration_text
from explorer.analysis.run_facts import RunFacts
from explorer.analysis.step_parts import StepStory
from explorer.report.html.markup import Markup, join, tag

PART_CLASSES = (
    "compute",
    "op",
    "communication",
    "copy",
    "idle",
    "data",
    "sync",
    "io",
    "gc",
    "compile",
    "runtime",
    "python",
)


def headline(facts: RunFacts, overview: Overview) -> Markup:
    """Title, one sentence, bars and figures."""
    figures = [
        tag(
            "div",
            tag("div", figure.title, class_="figure-title"),
            tag("div", figure.value, class_=f"figure-value {figure.tone}"),
            tag("div", figure.sentence, class_="figure-sentence"),
            class_="figure",
        )
        for figure in overview.figures
    ]
    return tag(
        "header",
        tag("h1", facts.name),
        tag("p", facts.sentence, class_="facts"),
        tag("div", *figures, class_="figures"),
        _bar(overview.worst) if overview.worst else "",
    )


def _bar(story: StepStory) -> Markup:
    parts = [
        tag(
            "span",
            class_=f"part part-{part.key}",
            style=f"width:{100 * part.share:.3f}%",
            title=f"{part.label}: {duration_text(part.duration_ns)} ({part.share:.1%})",
        )
        for part in story.parts
    ]
    legend = [
        tag(
            "li",
            tag("span", class_=f"swatch part-{part.key}"),
            tag("b", part.label),
            f" {duration_text(part.duration_ns)}, {part.share:.1%}. ",
            tag("span", part.meaning, class_="meaning"),
        )
        for part in story.parts
    ]
    what = "Mean complete step" if story.has_steps else "Whole recording"
    return join(
        tag(
            "p",
            f"{what} of rank {story.rank} on {story.device}: {duration_text(story.mean_ns)}",
            class_="bar-title",
        ),
        tag("div", *parts, class_="bar"),
        tag("ul", *legend, class_="legend"),
    )
