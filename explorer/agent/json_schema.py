"""The JSON Schema of every document: made from the documented views where a document is their rows, written out where not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from explorer.analysis.diff.comparison import DIMENSIONS
from explorer.analysis.view import all_views
from explorer.model.errors import UsageError

DIALECT = "https://json-schema.org/draft/2020-12/schema"

_VIEW_OF = {
    "summary": "rank_summary",
    "health": "run_health",
    "lines": "lines_by_place",
    "ops": "ops",
    "kernels": "kernels",
    "modules": "modules_time",
    "steps": "steps_summary",
    "breakdown": "breakdown",
    "gaps": "gaps",
    "memory": "memory_summary",
}
"""Documents whose rows are the rows of a view."""

_JSON_TYPES = {
    "INTEGER": "integer",
    "BIGINT": "integer",
    "HUGEINT": "integer",
    "DOUBLE": "number",
    "BOOLEAN": "boolean",
    "VARCHAR": "string",
}

_TEXT = {"type": "string"}
_WHOLE = {"type": "integer"}
_SHARE = {"type": "number"}
_CURSOR = {
    "type": ["string", "null"],
    "description": "Pass as cursor for the next page; null: this was the last",
}


def _object(properties: Mapping[str, Any], required: Sequence[str] | None = None) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties if required is None else required),
    }


def _list(item: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": dict(item)}


_LINE_NS = {"type": "integer", "description": "Time of this line per step, recording cost taken off"}
_LINE = _object({"file": _TEXT, "line": _WHOLE, "function": _TEXT, "code": _TEXT, "time_ns": _LINE_NS})
_SAVING = _object({"low": _WHOLE, "expected": _WHOLE, "high": _WHOLE})
_SEVERITY = {"enum": ["high", "medium", "low"]}
_BASIS = {
    "enum": ["replay", "bound", "none"],
    "description": "replay: predicted by replaying the dependency graph; bound: the most it can be; none: it speaks of no time",
}
_FULL_FINDING = _object(
    {
        "id": _TEXT,
        "rule": _TEXT,
        "title": _TEXT,
        "severity": _SEVERITY,
        "confidence": _SEVERITY,
        "saving_ns": _SAVING,
        "saving_share": _SHARE,
        "saving_basis": _BASIS,
        "ranks": _list(_WHOLE),
        "steps": _list(_WHOLE),
        "lines": _list(_object({"site_id": _WHOLE, **_LINE["properties"], "share": _SHARE})),
        "evidence": _list(_object({"statement": _TEXT, "sql": _TEXT, "events": _list(_TEXT)})),
        "advice": _TEXT,
        "caveats": _list(_TEXT),
        "symptoms": _list(_TEXT),
    }
)
_BRIEF_FINDING = _object(
    {
        "id": _TEXT,
        "title": _TEXT,
        "severity": _SEVERITY,
        "confidence": _SEVERITY,
        "saving_ns": _SAVING,
        "saving_share": _SHARE,
        "saving_basis": _BASIS,
        "lines": _list(_LINE),
        "evidence": _list(_TEXT),
        "advice": _TEXT,
        "caveats": _list(_TEXT),
        "symptoms": _list(_TEXT),
    },
    (
        "id",
        "title",
        "severity",
        "confidence",
        "saving_ns",
        "saving_share",
        "saving_basis",
        "lines",
        "evidence",
        "advice",
    ),
)
_COLLECTIVE = _object(
    {
        "group": _TEXT,
        "group_description": _TEXT,
        "operation": _TEXT,
        "side": {"enum": ["host", "device"]},
        "dtype": _TEXT,
        "group_size": _WHOLE,
        "calls": _WHOLE,
        "total_bytes": _WHOLE,
        "p50_bytes": _WHOLE,
        "total_ns": _WHOLE,
        "p50_ns": _WHOLE,
    },
    ("operation", "calls", "total_ns"),
)
_VERDICT = _object(
    {
        "answer": {"enum": ["slower", "faster", "no_significant_change", "undecided"]},
        "change": {
            "type": "number",
            "description": "(after - before) / before of the median step; absent where a run has none",
        },
        "low": {"type": "number", "description": "Low end of its 95 % interval; absent where undecided"},
        "high": {"type": "number", "description": "High end of its 95 % interval"},
        "steps_before": _WHOLE,
        "steps_after": _WHOLE,
    },
    ("answer", "steps_before", "steps_after"),
)
_CHANGE = _object(
    {
        "key": _TEXT,
        "before_ns": _WHOLE,
        "after_ns": _WHOLE,
        "calls_before": _SHARE,
        "calls_after": _SHARE,
        "status": {"enum": ["same", "new", "vanished", "renamed"]},
        "detail": _TEXT,
        "change_ns": {"type": "integer", "description": "Per step, on the critical path"},
    }
)
_STEP_NS = {
    "type": "integer",
    "description": "The typical step without the cost of recording: what savings and shares refer to",
}
_RECORDED_NS = {
    "type": "integer",
    "description": "Mean step as recorded, with recording and interruptions: what numbers of evidence are parts of",
}
_HEAD = {
    "run": _TEXT,
    "step_ns": _STEP_NS,
    "recorded_step_ns": _RECORDED_NS,
    "steps": _WHOLE,
    "ranks": _WHOLE,
}
_NOT_CHECKED = _list(_object({"rule": _TEXT, "reason": _TEXT}))

_WRITTEN: dict[str, tuple[str, dict[str, Any]]] = {
    "findings": (
        "neuron-explorer/findings/1",
        _object(
            {
                **_HEAD,
                "health": _list({"type": "object"}),
                "findings": _list(_FULL_FINDING),
                "not_checked": _NOT_CHECKED,
            }
        ),
    ),
    "findings-brief": (
        "neuron-explorer/findings-brief/1",
        _object(
            {
                **_HEAD,
                "findings": _list(_BRIEF_FINDING),
                "total": _WHOLE,
                "next_cursor": _CURSOR,
                "not_checked": {
                    "type": "object",
                    "additionalProperties": _WHOLE,
                    "description": "How many rules could not be checked, by reason",
                },
                "doubts": _list(_TEXT),
            }
        ),
    ),
    "what-if": (
        "neuron-explorer/what-if/1",
        _object(
            {
                "run": _TEXT,
                "edits": _list(_TEXT),
                "rank": _WHOLE,
                "steps": _WHOLE,
                "step_before_ns": _WHOLE,
                "step_after_ns": _WHOLE,
                "saving_ns": _WHOLE,
                "saving_share": _SHARE,
                "wall_before_ns": _WHOLE,
                "wall_after_ns": _WHOLE,
            }
        ),
    ),
    "query": (
        "neuron-explorer/query/1",
        _object(
            {
                "run": _TEXT,
                "columns": _list(_TEXT),
                "rows": _list({"type": "object"}),
                "truncated": {"type": "boolean"},
            }
        ),
    ),
    "critical-path": (
        "neuron-explorer/critical-path/1",
        _object({"run": _TEXT, "kinds": _list({"type": "object"}), "lines": _list({"type": "object"})}),
    ),
    "source": (
        "neuron-explorer/source/1",
        _object(
            {
                "run": _TEXT,
                "file": _TEXT,
                "whole_text": {"type": "boolean"},
                "lines": _list(_object({"line": _WHOLE, "text": _TEXT})),
            }
        ),
    ),
    "finding": ("neuron-explorer/finding/1", _object({"run": _TEXT, "finding": _FULL_FINDING})),
    "collectives": (
        "neuron-explorer/collectives/1",
        _object(
            {"run": _TEXT, "rows": _list(_COLLECTIVE), "total": _WHOLE, "next_cursor": _CURSOR},
            ("run", "rows"),
        ),
    ),
    "neighbours": (
        "neuron-explorer/neighbours/1",
        _object(
            {
                "run": _TEXT,
                "event": _TEXT,
                "events": _list(_object({"relation": _TEXT, "id": _TEXT})),
                "total": _WHOLE,
                "next_cursor": _CURSOR,
            }
        ),
    ),
    "compare": (
        "neuron-explorer/compare/1",
        _object(
            {
                "before": _TEXT,
                "after": _TEXT,
                "step_before_ns": _WHOLE,
                "step_after_ns": _WHOLE,
                "change_ns": _WHOLE,
                "verdict": _VERDICT,
                "comparable": {"type": "boolean"},
                "differences": _list(
                    _object(
                        {
                            "what": _TEXT,
                            "before": _TEXT,
                            "after": _TEXT,
                            "weight": {
                                "enum": ["blocks", "note"],
                                "description": "blocks: the step times do not measure the same work",
                            },
                        }
                    )
                ),
                "mean_change_ns": {
                    "type": "integer",
                    "description": "Change of the mean of the middle half of the steps: what the changes of a table add up to",
                },
                "by": {"enum": list(DIMENSIONS)},
                "changes": _list(_CHANGE),
                "total": _WHOLE,
                "next_cursor": _CURSOR,
            }
        ),
    ),
    "schema": (
        "neuron-explorer/schema/1",
        _object(
            {
                "run": _TEXT,
                "name": _TEXT,
                "doc": _TEXT,
                "relations": _list(_object({"name": _TEXT, "kind": _TEXT, "doc": _TEXT}, ("name", "kind"))),
                "columns": _list(
                    _object(
                        {"name": _TEXT, "type": _TEXT, "unit": _TEXT, "doc": _TEXT}, ("name", "type", "doc")
                    )
                ),
                "total": _WHOLE,
                "next_cursor": _CURSOR,
            },
            ("total", "next_cursor"),
        ),
    ),
    "event": (
        "neuron-explorer/event/1",
        _object(
            {
                "run": _TEXT,
                "event": {"type": "object"},
                "lines": _list({"type": "object"}),
                "stack": _list({"type": "object"}),
            }
        ),
    ),
}

DOCUMENTS: tuple[str, ...] = tuple(sorted({*_VIEW_OF, *_WRITTEN}))
"""Every document with a published schema."""


def json_schema(name: str) -> dict[str, Any]:
    """The JSON Schema of a document. Unknown further keys may be added later. Raises UsageError for an unknown name."""
    if name in _WRITTEN:
        identity, body = _WRITTEN[name]
    elif name in _VIEW_OF:
        identity, body = f"neuron-explorer/{name}/1", _table(_VIEW_OF[name])
    else:
        raise UsageError(f"There is no document '{name}'.", f"Documents: {', '.join(DOCUMENTS)}.")
    properties = {"schema": {"const": identity}, **body["properties"]}
    return {
        "$schema": DIALECT,
        "title": identity,
        **body,
        "properties": properties,
        "required": ["schema", *body["required"]],
    }


def _table(view: str) -> dict[str, Any]:
    columns = {
        column.name: {
            "type": [_JSON_TYPES.get(column.type, "string"), "null"],
            "description": column.doc + ("" if column.unit == "-" else f" ({column.unit})"),
        }
        for column in all_views()[view].columns
    }
    row = _object(columns, ())
    return _object(
        {"run": _TEXT, "rows": _list(row), "total": _WHOLE, "next_cursor": _CURSOR}, ("run", "rows")
    )
