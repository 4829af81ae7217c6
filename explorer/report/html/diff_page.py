"""A comparison of two runs as one HTML file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from explorer.analysis.phrase import duration_text
from explorer.report.html.markup import Markup, join, section, tag
from explorer.report.html.page import asset
from explorer.report.html.tables_section import Field, table_section

if TYPE_CHECKING:
    from explorer.analysis.diff.comparison import Comparison

_TITLES = {
    "kind": "By kind of work",
    "phase": "By phase",
    "module": "By module",
    "line": "By source line",
    "op": "By op",
    "kernel": "By kernel",
}
_VERDICTS = {
    "slower": ("slower", "bad"),
    "faster": ("faster", "good"),
    "no_significant_change": ("no significant change", "plain"),
    "undecided": ("undecided", "plain"),
}
_FIELDS = (
    Field("change_ns", "change", "duration"),
    Field("before_ns", "before", "duration"),
    Field("after_ns", "after", "duration"),
    Field("key", "what", "code"),
    Field("status", "status"),
    Field("detail", "detail", "code"),
)


def diff_html(comparison: Comparison) -> str:
    """Verdict and comparability first, then one sortable table per dimension."""
    tables = [
        table_section(f"by-{name}", _TITLES[name], rows, _FIELDS, "Nothing.")
        for name, deltas in comparison.explained.items()
        if (rows := _rows(deltas))
        and not (name not in ("kind", "phase") and {row["key"] for row in rows} == {"(none)"})
    ]
    title = f"{comparison.before} → {comparison.after}"
    body = join(
        tag("header", tag("h1", title), _verdict(comparison)),
        tag("nav", tag("button", "light / dark", type="button", id="theme")),
        tag("main", *tables, _method()),
        Markup(f"<script>{asset('report.js')}</script>"),
    )
    head = join(
        Markup('<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'),
        Markup(
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'\">"
        ),
        tag("title", f"{title} - neuron-explorer"),
        Markup(f"<style>{asset('report.css')}</style>"),
    )
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>{body}</body></html>\n'


def _rows(deltas: Any) -> list[dict[str, Any]]:
    return [
        {
            "change_ns": delta.change_ns,
            "before_ns": delta.before_ns,
            "after_ns": delta.after_ns,
            "key": delta.key,
            "status": "" if delta.status == "same" else delta.status,
            "detail": delta.detail,
        }
        for delta in deltas
        if delta.before_ns or delta.after_ns
    ]


def _verdict(comparison: Comparison) -> Markup:
    verdict = comparison.verdict
    word, tone = _VERDICTS[verdict.answer]
    if verdict.answer == "undecided":
        word = f"{word}: {verdict.reason}"
    figure = tag(
        "div",
        tag("div", "Median step", class_="figure-title"),
        tag(
            "div",
            f"{duration_text(comparison.before_ns)} → {duration_text(comparison.after_ns)}  {verdict.change_text}",
            class_=f"figure-value {tone}",
        ),
        tag(
            "div",
            f"{word}; {verdict.basis_text}",
            class_="figure-sentence",
        ),
        class_="figure",
    )
    notes = [
        tag(
            "li",
            tag("b", "Not comparable: " if difference.weight == "blocks" else "Note: "),
            f"{difference.what} {difference.before} → {difference.after}",
        )
        for difference in comparison.differences
    ]
    return join(tag("div", figure, class_="figures"), tag("ul", *notes) if notes else "")


def _method() -> Markup:
    text = (
        "The tables compare time on the critical path per step, over the middle half of the complete steps, so the changes"
        " of each table add up to the change of the step. Lines are followed through edits of the source, kernels through"
        " new names."
    )
    return section("method", "Method", tag("p", text))
