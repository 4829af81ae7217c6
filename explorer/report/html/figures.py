"""The plots as plotly figures in plain dictionaries; colours are filled in by the page's script from its theme."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from explorer.analysis.flame import FlameNode
from explorer.analysis.step_parts import PARTS, StepStory
from explorer.analysis.timeline import Timeline

TIMELINE_CELLS = 400
FLAME_NODES = 1500
MEMORY_POINTS = 4000
SMALLEST_FRAME = 0.002
NS_PER_MS = 1e6


def steps_figure(stories: Sequence[StepStory]) -> dict[str, Any]:
    """Stacked bars: each step of each rank, by part. Many ranks: the slowest step of each."""
    several = len({(story.rank, story.device) for story in stories}) > 1
    labels: list[str] = []
    parts: dict[str, list[float]] = {}
    for story in stories:
        bars = (
            [max(story.steps, key=lambda bar: bar.wall_ns)] if several and len(stories) > 8 else story.steps
        )
        for bar in bars:
            name = f"step {bar.step}" if bar.step is not None else "recording"
            labels.append(f"rank {story.rank} {story.device} {name}" if several else name)
            for key in PARTS:
                parts.setdefault(key, []).append(bar.parts.get(key, 0) / NS_PER_MS)
    traces = [
        {
            "type": "bar",
            "name": PARTS[key][0],
            "x": labels,
            "y": values,
            "part": key,
            "hovertemplate": "%{y:.3f} ms<extra>%{fullData.name}</extra>",
        }
        for key, values in parts.items()
        if any(values)
    ]
    return {
        "data": traces,
        "layout": {
            "barmode": "stack",
            "yaxis": {"title": {"text": "ms"}},
            "xaxis": {"type": "category"},
            "bargap": 0.1,
        },
    }


def timeline_figure(timeline: Timeline) -> dict[str, Any]:
    """How busy each track is from the first step to the last; hovering names the longest event of a cell."""
    begin = min((step["start_ns"] for step in timeline.steps), default=timeline.start_ns)
    end = max((step["start_ns"] + step["duration_ns"] for step in timeline.steps), default=timeline.end_ns)
    rows: list[list[float | None]] = []
    names: list[list[str]] = []
    labels: list[str] = []
    for track in timeline.tracks:
        for lane in track.lanes[:1]:
            window = lane.window(begin, end, TIMELINE_CELLS)
            rows.append([round(float(value), 3) if value > 0 else None for value in window.busy])
            names.append([timeline.name(int(row))[:80] if row >= 0 else "" for row in window.row])
            labels.append(f"{track.label} ({track.device})" if track.device else track.label)
    step = (end - begin) / TIMELINE_CELLS / NS_PER_MS
    trace = {
        "type": "heatmap",
        "z": rows,
        "text": names,
        "y": [_unique(labels, number) for number in range(len(labels))],
        "x0": step / 2,
        "dx": step,
        "zmin": 0,
        "zmax": 1,
        "ygap": 2,
        "hovertemplate": "%{x:.3f} ms<br>%{text}<br>busy %{z:.0%}<extra></extra>",
        "colorbar": {"title": {"text": "busy"}, "tickformat": ".0%", "thickness": 12},
    }
    marks = [
        {
            "type": "line",
            "x0": at,
            "x1": at,
            "yref": "paper",
            "y0": 0,
            "y1": 1,
            "line": {"width": 1, "dash": "dot"},
        }
        for step_row in timeline.steps[:60]
        if (at := (step_row["start_ns"] - begin) / NS_PER_MS) >= 0
    ]
    layout = {
        "xaxis": {"title": {"text": "ms"}},
        "yaxis": {"autorange": "reversed", "automargin": True},
        "shapes": marks,
    }
    return {"data": [trace], "layout": layout}


def _unique(labels: Sequence[str], number: int) -> str:
    label = labels[number]
    return label if labels.count(label) == 1 else f"{label} #{labels[: number + 1].count(label)}"


def flame_figure(root: FlameNode) -> dict[str, Any]:
    """The call tree of user code as an icicle; frames below 0.2 % of the whole are left out."""
    ids: list[str] = ["0"]
    labels, parents, values, texts = [root.label], [""], [root.total_ns / NS_PER_MS], [""]
    waiting = [(root, "0")]
    while waiting and len(ids) < FLAME_NODES:
        node, identity = waiting.pop(0)
        for number, child in enumerate(node.ordered()):
            if child.total_ns < SMALLEST_FRAME * max(1, root.total_ns) or len(ids) >= FLAME_NODES:
                break
            name = f"{identity}.{number}"
            ids.append(name)
            labels.append(child.label[:120])
            parents.append(identity)
            values.append(child.total_ns / NS_PER_MS)
            texts.append(child.code[:200])
            waiting.append((child, name))
    trace = {
        "type": "icicle",
        "ids": ids,
        "labels": labels,
        "parents": parents,
        "values": values,
        "text": texts,
        "branchvalues": "total",
        "tiling": {"orientation": "v", "flip": "y"},
        "hovertemplate": "%{label}<br>%{text}<br>%{value:.3f} ms, %{percentRoot:.1%}<extra></extra>",
        "textinfo": "label",
        "sort": False,
        "escape": True,
    }
    return {"data": [trace], "layout": {}}


def memory_figure(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Allocated and reserved bytes over time, per rank and device."""
    series: dict[tuple[int, str], list[dict[str, Any]]] = {}
    for row in rows:
        series.setdefault((row["rank"], row["device"]), []).append(row)
    first = min((row["timestamp_ns"] for row in rows), default=0)
    traces = []
    for (rank, device), points in series.items():
        kept = _thinned([row["allocated_bytes"] or 0 for row in points])
        for key in ("allocated_bytes", "reserved_bytes"):
            values = [points[number][key] for number in kept]
            if all(value is None for value in values):
                continue
            traces.append(
                {
                    "type": "scatter",
                    "mode": "lines",
                    "line": {"shape": "hv", "dash": "solid" if key == "allocated_bytes" else "dot"},
                    "name": f"rank {rank} {device} {key.removesuffix('_bytes')}",
                    "x": [(points[number]["timestamp_ns"] - first) / NS_PER_MS for number in kept],
                    "y": [value / 1e6 if value is not None else None for value in values],
                }
            )
    return {
        "data": traces,
        "layout": {
            "xaxis": {"title": {"text": "ms"}},
            "yaxis": {"title": {"text": "MB"}, "rangemode": "tozero"},
        },
    }


def _thinned(values: Sequence[int]) -> list[int]:
    """Numbers of at most about MEMORY_POINTS values that keep each stretch's highest and lowest."""
    if len(values) <= MEMORY_POINTS:
        return list(range(len(values)))
    array = np.asarray(values)
    edges = np.linspace(0, len(values), MEMORY_POINTS // 2 + 1).astype(int)
    kept = {0, len(values) - 1}
    for left, right in pairwise(edges):
        if right > left:
            kept |= {int(left + array[left:right].argmax()), int(left + array[left:right].argmin())}
    return sorted(kept)


def roofline_figure(rows: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """Achieved FLOP/s against arithmetic intensity, with each device's roof. None without such rows."""
    points = [row for row in rows if row.get("intensity") and row.get("achieved_flops")]
    if not points:
        return None
    traces: list[dict[str, Any]] = [
        {
            "type": "scatter",
            "mode": "markers",
            "name": "ops",
            "x": [row["intensity"] for row in points],
            "y": [row["achieved_flops"] / 1e9 for row in points],
            "text": [str(row["name"])[:80] for row in points],
            "hovertemplate": "%{text}<br>%{x:.3g} FLOP/byte<br>%{y:.4g} GFLOP/s<extra></extra>",
        }
    ]
    low, high = min(p["intensity"] for p in points) / 2, max(p["intensity"] for p in points) * 4
    for (device, dtype), (peak, bandwidth) in sorted(_roofs(points).items()):
        ridge = [peak / bandwidth] if peak and bandwidth else []
        xs = sorted({low, *(x for x in ridge if low < x < high), high})
        limits = [min(peak or math.inf, bandwidth * x if bandwidth else math.inf) / 1e9 for x in xs]
        traces.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": f"roof of {device} {dtype}".strip(),
                "x": xs,
                "y": limits,
            }
        )
    axes = {
        "xaxis": {"type": "log", "title": {"text": "FLOP per byte"}},
        "yaxis": {"type": "log", "title": {"text": "GFLOP/s"}},
    }
    return {"data": traces, "layout": axes}


def _roofs(points: Sequence[dict[str, Any]]) -> dict[tuple[str, str], tuple[float, float]]:
    """Peak FLOP/s and bytes/s of each device and dtype, read off what was attainable for its ops; 0 where none tells."""
    roofs: dict[tuple[str, str], tuple[float, float]] = {}
    for row in points:
        if not row.get("attainable_flops") or row.get("bound") not in ("compute", "memory"):
            continue
        key = (str(row["device"]), str(row.get("dtype") or ""))
        peak, bandwidth = roofs.get(key, (0.0, 0.0))
        if row["bound"] == "compute":
            peak = max(peak, row["attainable_flops"])
        else:
            bandwidth = max(bandwidth, row["attainable_flops"] / row["intensity"])
        roofs[key] = (peak, bandwidth)
    return roofs


def ranks_figure(rows: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """Waiting for other ranks, ranks against steps. None for one rank."""
    ranks = sorted({row["rank"] for row in rows})
    steps = sorted({row["step"] for row in rows if row["step"] is not None})
    if len(ranks) < 2 or not steps:
        return None
    value = {(row["rank"], row["step"]): row["wait_ns"] / NS_PER_MS for row in rows}
    trace = {
        "type": "heatmap",
        "z": [[value.get((rank, step)) for step in steps] for rank in ranks],
        "x": [f"step {step}" for step in steps],
        "y": [f"rank {rank}" for rank in ranks],
        "hovertemplate": "%{y}, %{x}<br>waits %{z:.3f} ms<extra></extra>",
        "colorbar": {"title": {"text": "ms waiting"}, "thickness": 12},
    }
    return {"data": [trace], "layout": {"yaxis": {"autorange": "reversed"}}}
