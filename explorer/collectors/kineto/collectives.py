"""What communication calls and kernels moved, as PyTorch records it (`record_param_comms` and NCCL kernel args)."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from explorer.collectors.device_work import collective_operation

OPERATIONS = {
    "allreduce": "all_reduce",
    "allgather": "all_gather",
    "allgatherintotensor": "all_gather",
    "reducescatter": "reduce_scatter",
    "reducescattertensor": "reduce_scatter",
    "alltoall": "all_to_all",
    "alltoallv": "all_to_all",
    "broadcast": "broadcast",
    "reduce": "reduce",
    "gather": "gather",
    "scatter": "scatter",
    "send": "send",
    "recv": "recv",
    "barrier": "barrier",
}
SIZES = {
    "float": 4, "float32": 4, "double": 8, "half": 2, "bfloat16": 2, "float16": 2, "long": 8, "int": 4, "short": 2,
    "char": 1, "byte": 1, "bool": 1, "signed char": 1, "unsigned char": 1, "long int": 8, "c10::half": 2,
    "c10::bfloat16": 2, "float8_e4m3fn": 1, "float8_e5m2": 1, "float8_e4m3fnuz": 1, "float8_e5m2fnuz": 1,
}  # fmt: skip
"""Element sizes by the names PyTorch writes (c10::toString of the scalar type)."""


def operation_of(text: str) -> str:
    """all_reduce and so on, from any spelling; the text itself where it is none of the known ones."""
    bare = text.lower().removeprefix("nccl:").replace("_", "").strip()
    for coalesced in ("coalesced", "base"):
        bare = bare.removesuffix(coalesced)
    return OPERATIONS.get(bare, text)


def collective_rows(
    rows: pa.Table,
    event_rows: npt.NDArray[np.int64],
    on_device: npt.NDArray[np.bool_],
    is_collective: npt.NDArray[np.bool_],
    first: int,
) -> list[dict[str, Any]]:
    """Rows of `collectives` for those events of a group of chunks whose args describe one, and for device work that is
    known to communicate by its name alone: traces before PyTorch 2.2 say no more."""
    described = rows.column("collective")
    result = _named(rows, event_rows[on_device & is_collective], first)
    if described.null_count == len(described):
        return result
    values_of = described.take(pa.array(event_rows))
    places = np.flatnonzero(np.asarray(pc.is_valid(values_of)))
    values = values_of.take(pa.array(places)).to_pylist()
    known = {int(event_rows[place]) + first for place in places}
    result = [row for row in result if row["event_id"] not in known]
    for place, value in zip(places.tolist(), values):
        name, group, description, ranks, before, after, size, dtype, sequence, destination, origin = value
        operation = operation_of(name or "")
        sent, received = _integer(before), _integer(after)
        width = SIZES.get((dtype or "").lower())
        moved = received if operation == "all_gather" else sent
        peer = _integer(destination if operation == "send" else origin)
        result.append(
            {
                "event_id": int(event_rows[place]) + first,
                "side": "device" if on_device[place] else "host",
                "group": group,
                "group_description": description,
                "operation": operation,
                "dtype": dtype,
                "element_count": sent,
                "size_bytes": moved * width if moved is not None and width else None,
                "group_size": _small(_integer(size)),
                "group_ranks": ranks,
                "sequence": _integer(sequence),
                "peer": _small(peer) if operation in ("send", "recv") else None,
            }
        )
    return result


def _named(rows: pa.Table, event_rows: npt.NDArray[np.int64], first: int) -> list[dict[str, Any]]:
    names = rows.column("name").take(pa.array(event_rows)).to_pylist() if len(event_rows) else []
    return [
        {"event_id": int(row) + first, "side": "device", "operation": collective_operation(name or "")}
        for row, name in zip(event_rows, names)
    ]


def _integer(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        value = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return None
    if isinstance(value, float) and math.isfinite(value) and value == int(value):
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 63 else None


def _small(value: int | None) -> int | None:
    return value if value is not None and abs(value) < 1 << 31 else None
