"""The whole page: sections in order of use, plots and script embedded once, no request to anywhere."""

from __future__ import annotations

import base64
import gzip
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from explorer.analysis.flame import flame_tree
from explorer.analysis.key_figures import overview
from explorer.analysis.phrase import ROOT_MODULE
from explorer.analysis.run_facts import run_facts
from explorer.analysis.source_view import CodeFile, code_file, line_rows
from explorer.analysis.timeline import load_timeline
from explorer.analysis.view import all_views
from explorer.report.html import figures
from explorer.report.html.closing import environment_section, health_section, methods_section, navigation
from explorer.report.html.findings_section import findings_section
from explorer.report.html.headline import headline
from explorer.report.html.markup import Markup, join, json_script, plot, section, tag
from explorer.report.html.tables_section import KERNELS, LINES, MODULES, OPS, table_section

if TYPE_CHECKING:
    from explorer.analysis.run import Run

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline' 'unsafe-eval'; img-src data: blob:; font-src data:"


def html_report(run: Run) -> str:
    """The report of a run as one HTML document (about 2 MB, most of it the plotting script)."""
    story = overview(run)
    lines = line_rows(run)
    for row in lines:
        row["place"] = f"{row['file']}:{row['line']}"
    rank = story.worst.rank if story.worst else run.ranks[0]
    drawn: dict[str, Any] = {}
    parts: list[tuple[str, str, Markup]] = [
        ("findings", "What to change", findings_section(run.bottlenecks(), _codes(run, lines))),
        *_plots(run, rank, story.stories, drawn),
        (
            "lines",
            "Source lines",
            table_section("lines", "Source lines", lines, LINES, "No event of this run has a source line."),
        ),
        ("ops", "Ops", table_section("ops", "Ops", run.ops().rows(), OPS, "The run holds no framework ops.")),
        (
            "kernels",
            "Kernels",
            table_section(
                "kernels", "Kernels", run.kernels().rows(), KERNELS, "The run holds no device work."
            ),
        ),
        (
            "modules",
            "Modules",
            table_section(
                "modules",
                "Modules",
                [{**row, "path": row["path"] or ROOT_MODULE} for row in run.modules().rows()],
                MODULES,
                "The run does not say which nn.Module ran.",
            ),
        ),
        ("health", "Health", health_section(run.health().rows())),
        ("environment", "Environment", environment_section(list(run.reader.manifests.values()))),
        ("method", "Method", methods_section()),
    ]
    facts = run_facts(run)
    body = join(
        headline(facts, story),
        navigation([(identity, title) for identity, title, _ in parts]),
        tag("main", *(markup for _, _, markup in parts)),
        json_script("figures", drawn),
        Markup(f'<script type="text/plain" id="plotly">{_plotly()}</script>') if drawn else "",
        Markup(f"<script>{asset('report.js')}</script>"),
    )
    head = join(
        Markup('<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'),
        tag("title", f"{facts.name} - neuron-explorer"),
        Markup(f"<style>{asset('report.css')}</style>"),
    )
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>{body}</body></html>\n'


def _plots(run: Run, rank: int, stories: Any, drawn: dict[str, Any]) -> list[tuple[str, str, Markup]]:
    found: list[tuple[str, str, Markup]] = []

    def add(identity: str, title: str, figure: dict[str, Any] | None, height_px: int, note: str) -> None:
        if figure is None or not figure["data"]:
            return
        drawn[identity] = figure
        found.append((identity, title, section(identity, title, plot(identity, height_px, title), note=note)))

    add(
        "steps",
        "Steps",
        figures.steps_figure(stories),
        340,
        "Each bar is a step; its parts add up to its time.",
    )
    timeline = load_timeline(run, rank, max_events=2_000_000)
    if timeline.tracks:
        height = 140 + 26 * sum(1 for track in timeline.tracks if track.lanes)
        add(
            "timeline",
            "Timeline",
            figures.timeline_figure(timeline),
            min(900, height),
            f"Rank {rank}: how busy each thread and stream is. Dotted lines are step starts.",
        )
    tree = flame_tree(run, rank)
    if tree.children:
        add(
            "flame",
            "Flame graph",
            figures.flame_figure(tree),
            460,
            f"User code of rank {rank} by call chain. Click a frame to zoom.",
        )
    roofline = _roofline(run)
    add(
        "roofline",
        "Roofline",
        roofline,
        420,
        _roofline_note(roofline),
    )
    memory = run.view("memory_timeline").rows() if run.reader.parts("memory_events") else []
    if memory:
        add("memory", "Memory", figures.memory_figure(memory), 360, "Allocated and reserved memory.")
    if len(run.ranks) > 1:
        add(
            "ranks",
            "Ranks",
            figures.ranks_figure(run.view("rank_waits").rows()),
            120 + 22 * min(40, len(run.ranks)),
            "Time each rank waits for the others; the rank that waits least holds the others up.",
        )
    return found


def _roofline(run: Run) -> dict[str, Any] | None:
    if "roofline" not in all_views():
        return None
    return figures.roofline_figure(run.view("roofline").rows())


def _roofline_note(figure: dict[str, Any] | None) -> str:
    note = "Work per byte against work per second"
    if figure is not None and len(figure["data"]) > 1:
        return f"{note}; a point far under its roof wastes the device."
    return f"{note}. No peak of this device is known, so there is no roof to compare with."


def _codes(run: Run, lines: list[dict[str, Any]]) -> Any:
    known: dict[str, CodeFile] = {}

    def code_of(file: str) -> CodeFile | None:
        if file not in known:
            known[file] = code_file(run, lines, file)
        return known[file] if known[file].complete else None

    return code_of


def asset(name: str) -> str:
    """A file that the page embeds."""
    return (files("explorer.report.html") / name).read_text(encoding="utf-8")


@cache
def _plotly() -> str:
    """The plotting script, compressed: browsers unpack it themselves."""
    from plotly.offline import get_plotlyjs

    return base64.b64encode(gzip.compress(get_plotlyjs().encode(), 9, mtime=0)).decode()
