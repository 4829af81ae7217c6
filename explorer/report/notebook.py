"""How runs, findings and tables show themselves in a notebook."""

from __future__ import annotations

from explorer.analysis.key_figures import overview
from explorer.analysis.result import Result
from explorer.analysis.run import Run
from explorer.analysis.run_facts import run_facts
from explorer.model.finding import Findings
from explorer.report.html.findings_section import findings_section
from explorer.report.html.headline import headline
from explorer.report.html.markup import Markup, tag
from explorer.report.html.page import asset


def _framed(body: Markup) -> str:
    """A part of the report with its style, kept apart from the notebook's own by a shadow root."""
    style = Markup(f"<style>{asset('report.css').replace(':root', ':host')}</style>")
    return tag("div", Markup(f'<template shadowrootmode="open">{style}{body}</template>'))


def run_html(run: Run) -> str:
    """A run: its key figures and where a step's time goes."""
    return _framed(headline(run_facts(run), overview(run)))


def findings_html(findings: Findings) -> str:
    """All findings, without source excerpts."""
    return _framed(findings_section(findings, lambda file: None))


def result_html(result: Result) -> str:
    """The rows, as pandas shows them."""
    return str(result.df().to_html(max_rows=60, escape=True))


def install() -> None:
    """Give the three classes their notebook form."""
    for cls, show in ((Run, run_html), (Findings, findings_html), (Result, result_html)):
        setattr(cls, "_repr_html_", show)  # noqa: B010
