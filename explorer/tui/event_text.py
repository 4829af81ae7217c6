"""An event, a range and the colours of the timeline in words: what stands under the timeline."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich.text import Text
from textual.theme import Theme

from explorer.tui import units
from explorer.tui.text import brief, safe
from explorer.tui.theme import inks, palette_of

if TYPE_CHECKING:
    from explorer.analysis.event_details import EventDetails

MOST_LINES, MOST_LAUNCHED, MOST_TRACKS = 5, 3, 4


def event_text(details: EventDetails, recording_start_ns: int, theme: Theme) -> Text:
    """Everything known of an event; times from the start of the recording."""
    css, event = inks(theme), details.event
    muted = css["muted"]
    text = Text()
    text.append("■ ", style=palette_of(theme).categories.get(event["category"], muted))
    text.append(safe(event["name"]), style="bold")
    text.append(
        f"  {event['category']} on {safe(event['track'] or '')}  {event['rank']}:{event['event_id']}\n",
        style=muted,
    )
    for name, value in _figures(event, recording_start_ns):
        text.append(f"{name} ", style=muted)
        text.append(f"{value}   ")
    text.append("\n")
    if event["file"]:
        text.append("line ", style=muted)
        text.append(f"{safe(event['file'])}:{event['line']}", style=css["secondary"])
        text.append(f" in {safe(event['function'] or '')}  ", style=muted)
        text.append(safe(event["code"] or ""))
        if event["attribution"]:
            text.append(f"  ({event['attribution']}, {event['precision']})", style=muted)
        text.append("\n")
    _append_launch(text, details, muted)
    for line in details.lines[:MOST_LINES]:
        text.append(f"{line['role']} {units.share(line['share'])} ", style=muted)
        text.append(f"{safe(line['file'])}:{line['line']}  {safe(line['code'] or '')}\n")
    if event["shapes"]:
        text.append("shapes ", style=muted)
        text.append(safe(event["shapes"])[:400] + "\n")
    if details.attributes:
        shown = "  ".join(f"{key}={value}" for key, value in details.attributes.items())
        text.append(safe(shown)[:1200], style=muted)
    return text


def _figures(event: Mapping[str, Any], recording_start_ns: int) -> list[tuple[str, str]]:
    figures = [("takes", units.duration(event["duration_ns"]))]
    if event["self_ns"] != event["duration_ns"]:
        figures.append(("itself", units.duration(event["self_ns"])))
    figures.append(("at", units.duration(event["start_ns"] - recording_start_ns)))
    for name, key in (("step", "step"), ("phase", "phase"), ("module", "module"), ("inside", "parent_name")):
        if event[key] not in (None, ""):
            figures.append((name, safe(str(event[key]))))
    if event["flops"]:
        figures.append(("work", units.work(event["flops"])))
    if event["size_bytes"]:
        figures.append(("moves", units.size(event["size_bytes"])))
    return figures


def _append_launch(text: Text, details: EventDetails, muted: str) -> None:
    if details.launch is not None:
        text.append("launched by ", style=muted)
        text.append(safe(details.launch["name"]))
        if details.event["op_name"]:
            text.append(" in ", style=muted)
            text.append(safe(details.event["op_name"]))
        text.append(", ", style=muted)
        text.append(units.duration(details.delay_ns))
        text.append(" after the call returned   p goes there\n", style=muted)
    elif details.launched:
        names = ", ".join(brief(each["name"]) for each in details.launched[:MOST_LAUNCHED])
        rest = len(details.launched) - MOST_LAUNCHED
        text.append("launched ", style=muted)
        text.append(names + (f" and {rest} more" if rest > 0 else ""))
        text.append("   p goes there\n", style=muted)


def range_text(statistics: Mapping[str, Any], theme: Theme) -> Text:
    """What happens in a range: how busy tracks are, and the names that take most."""
    css, colors = inks(theme), palette_of(theme).categories
    text = Text()
    text.append(f"Range of {units.duration(statistics['duration_ns'])}", style="bold")
    text.append(f", {statistics['events']:,} events\n", style=css["muted"])
    for track in statistics["tracks"][:MOST_TRACKS]:
        text.append(f"{units.share(track['share']):>7} busy ", style="bold")
        text.append(f"{safe(track['label'])}   ", style=css["muted"])
    text.append("\n")
    for name in statistics["names"]:
        text.append(f"{units.duration(name['total_ns']):>9} {units.share(name['share']):>7}")
        text.append(f" {name['count']:>8,}×  ")
        text.append("■ ", style=colors.get(name["category"], css["muted"]))
        text.append(brief(name["name"]) + "\n")
    return text


def legend_text(mode: str, labels: list[str], colors: list[str], theme: Theme) -> Text:
    """What the colours stand for, and what to do next."""
    text = Text()
    if mode == "category":
        for label, color in zip(labels, colors):
            text.append("■ ", style=color)
            text.append(f"{label}   ")
    else:
        text.append(f"Each {mode} has its colour ({len(labels):,} of them).   ")
    hint = "\nArrows or a click select an event; / searches; drag, or [ and ], for a range."
    text.append(hint, style=inks(theme)["muted"])
    return text
