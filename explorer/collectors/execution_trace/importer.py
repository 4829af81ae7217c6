"""Import of PyTorch execution traces (ExecutionTraceObserver): operators with tensor ids, joined to a Kineto trace's events.

Alone, an execution trace has no times: its nodes are kept as they are. Beside the Kineto trace of the same run, nodes meet
events by the record-function id, and tensors give data dependencies between operators.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from explorer.collectors.execution_trace.nodes import Node, parse_node
from explorer.collectors.import_session import ImportSession
from explorer.collectors.json_document import Document, read_document
from explorer.collectors.options import DEFAULTS, ImportOptions
from explorer.collectors.row_buffer import RowBuffer, attributes_json
from explorer.collectors.source import Source
from explorer.collectors.source_content import read_content
from explorer.model.errors import InputError

if TYPE_CHECKING:
    from explorer.store.writer import RunWriter

NAME = "execution_trace"
KIND = "execution_node"
"""Kind of the rows of `source_rows` that hold nodes; their key is the node's id."""


def recognises(source: Source) -> bool:
    """A JSON object with a schema version and nodes, and no trace events."""
    head = source.head
    return (
        head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{"
        and b'"nodes"' in head
        and b'"schema"' in head
        and b'"traceEvents"' not in head
    )


def import_source(source: Source, writer: RunWriter, options: ImportOptions = DEFAULTS) -> None:
    """Keep an execution trace by itself, without times."""
    document, nodes = _read(source)
    session = ImportSession(writer, source, NAME, options)
    for row in nodes:
        node = parse_node(row) if isinstance(row, dict) else None
        if node is None:
            session.quarantine({"node": row}, "no_id")
        else:
            session.source_row(KIND, node.name, _fields(node), key=node.id)
    writer.manifest.attributes[NAME] = _rest(document)
    writer.health(
        "no_times",
        "warning",
        len(nodes),
        "An execution trace has no times: its operators are listed, nothing can be measured.",
        "Import it together with the Kineto trace of the same run.",
        "breakdown, lines, kernels",
    )
    if document.damage:
        session.lost("the execution trace", document.damage, offset=document.offset)
    session.close()


def join(source: Source, writer: RunWriter) -> int:
    """Add an execution trace to the rank whose Kineto trace the writer holds already; returns how many nodes met an event.

    Each node becomes a source row that names its event; a tensor that one operator makes and a later one reads becomes an
    edge of kind `data` between their events. Raises InputError when the trace cannot be read.
    """
    document, rows = _read(source)
    events = _events_by_record(writer)
    kept = RowBuffer(writer, "source_rows", ("kind", "name", "key", "attributes"))
    producers: dict[tuple[int, int], int] = {}
    edges: set[tuple[int, int]] = set()
    met = lost = 0
    nodes = [node for row in rows if isinstance(row, dict) and (node := parse_node(row)) is not None]
    lost = len(rows) - len(nodes)
    # Nodes are written when they end; record-function ids count in the order of their starts.
    for node in sorted(nodes, key=lambda node: (node.record_function_id or 0, node.id)):
        event = events.get(node.record_function_id) if node.record_function_id else None
        event_id = event[0] if event is not None and event[1] == node.name else None
        met += event_id is not None
        kept.add(KIND, node.name, str(node.id), attributes_json(_fields(node) | {"event_id": event_id}))
        if event_id is None:
            continue
        for tensor in node.inputs:
            maker = producers.get(tensor)
            if maker is not None and maker != event_id:
                edges.add((maker, event_id))
        for tensor in node.outputs:
            producers[tensor] = event_id
    kept.flush()
    if edges:
        source_ids, target_ids = zip(*sorted(edges))
        writer.write(
            "edges",
            {
                "source_id": source_ids,
                "target_rank": [writer.rank] * len(edges),
                "target_id": target_ids,
                "kind": ["data"] * len(edges),
            },
        )
    _tell(source, writer, document, len(rows), met, lost)
    return met


def _tell(source: Source, writer: RunWriter, document: Document, total: int, met: int, lost: int) -> None:
    writer.manifest.attributes[NAME] = _rest(document)
    writer.manifest.inputs.append(
        {"path": source.path, "size_bytes": source.size_bytes, "sha256": None, "format": NAME, "rows": total}
    )
    counts = writer.manifest.counts
    for name, count in (("source_total", total), ("source_rows", total - lost), ("quarantine", lost)):
        counts[name] = counts.get(name, 0) + count
    if met < total:
        writer.health(
            "unjoined_nodes",
            "info",
            total - met,
            f"{total - met} of {total} nodes of the execution trace have no event in the Kineto trace "
            "(its thread and process nodes never have one).",
        )
    if document.damage:
        writer.manifest.losses.append({"where": NAME, "reason": document.damage, "offset": document.offset})
        writer.health("lost_rows", "warning", 0, f"The execution trace is damaged: {document.damage}.")


def _read(source: Source) -> tuple[Document, list[Any]]:
    content = read_content(source)
    document = read_document(content.data, source.path)
    nodes = document.value.get("nodes") if isinstance(document.value, dict) else None
    if not isinstance(nodes, list):
        raise InputError(f"{source.path} is no execution trace: it holds no nodes.")
    if content.damage and not document.damage:
        document = Document(document.value, content.damage)
    return document, nodes


def _rest(document: Document) -> dict[str, Any]:
    fields = {key: value for key, value in document.value.items() if key != "nodes"}
    decoded: dict[str, Any] = json.loads(attributes_json(fields) or "{}")
    return decoded


def _fields(node: Node) -> dict[str, Any]:
    return node.rest | {"rf_id": node.record_function_id}


def _events_by_record(writer: RunWriter) -> dict[int, tuple[int, str]]:
    """Event number and name by record-function id, from the parts already written.

    Newer Kineto traces name it 'Record function id'; in older ones it equals the external id.
    """
    import pyarrow.parquet as pq

    found: dict[int, tuple[int, str]] = {}
    by_external: dict[int, tuple[int, str]] = {}
    for part in writer.manifest.parts:
        if part.table != "events":
            continue
        rows = pq.read_table(
            writer.location.join(part.path),
            columns=["event_id", "name", "category", "attributes"],
            filesystem=writer.location.filesystem,
        )
        for row in rows.to_pylist():
            if (
                row["category"] not in ("op", "annotation", "collective", "data", "step")
                or not row["attributes"]
            ):
                continue
            attributes = json.loads(row["attributes"])
            for name, table in (("Record function id", found), ("External id", by_external)):
                number = attributes.get(name)
                if isinstance(number, int) and number > 0:
                    table.setdefault(number, (row["event_id"], row["name"]))
    return found or by_external
