"""Python lines of instructions: the chain of debug information a profile may hold, each mechanism after the other.

Order: StackFrame (framework code), KernelInstructions with KernelStackFrames (NKI), nki_source_location,
bir_debug_info_source_location, hlo_attrs (source_file, source_line), layer (module path only, no line).
The first mechanism that gives a line wins; an instruction with several frames is shared between their lines.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import pyarrow as pa

from explorer.collectors.call_stacks import CallStack, CallStacks, Frame
from explorer.collectors.neuron.tables import ProfileTables

MECHANISMS = ("stack_frame", "kernel", "nki_location", "bir_location", "hlo_attributes", "layer")
_NUMBERS = re.compile(r"-?\d+")
_LOCATION = re.compile(r"^\s*(.*?\S):(\d+)(?::\d+)?\s*$")


@dataclass(frozen=True, slots=True)
class Line:
    """One way to charge an instruction: `sites` with their `weights` (none: equal parts)."""

    sites: tuple[int, ...]
    stack_id: int | None
    mechanism: str
    weights: tuple[float, ...] = ()

    @property
    def shares(self) -> tuple[float, ...]:
        """Part of the cost for each site; they sum to 1."""
        return self.weights or (1.0 / len(self.sites),) * len(self.sites)

    @property
    def attribution(self) -> str:
        return "debug_info" if self.sites else "module"

    @property
    def precision(self) -> str | None:
        if not self.sites:
            return "coarse"
        return "exact" if len(self.sites) == 1 else "shared"


class LineTable:
    """Every distinct line of a profile, numbered; joins that give an Instruction row its number."""

    def __init__(self, tables: ProfileTables, stacks: CallStacks) -> None:
        self._tables = tables
        self._stacks = stacks
        self.lines: list[Line] = []
        self.modules: dict[str, str] = {}
        self._numbers: dict[Line, int] = {}
        self._mapped: list[str] = []
        self._frames = _Frames(tables) if tables.has("Instruction", "stack_frame_ids") else None
        self._map_text("stack_frame", "stack_frame_ids", self._stack_frame)
        self._map_kernels()
        self._map_text("nki_location", "nki_source_location", self._location("nki_location"))
        self._map_text("bir_location", "bir_debug_info_source_location", self._location("bir_location"))
        self._map_text("hlo_attributes", "hlo_attrs", self._hlo_attributes)
        self._map_text("layer", "layer", lambda text: Line((), None, "layer") if text.strip() else None)

    def number(self, line: Line) -> int:
        """The number of a line."""
        known = self._numbers.get(line)
        if known is None:
            known = self._numbers[line] = len(self.lines)
            self.lines.append(line)
        return known

    @property
    def joins(self) -> str:
        """LEFT JOINs on an Instruction view aliased `i`."""
        clauses = []
        for mechanism in self._mapped:
            if mechanism == "kernel":
                clauses.append(
                    "LEFT JOIN line_kernel ON line_kernel.name = i.kernel_instruction_name"
                    " AND line_kernel.pcore_idx = coalesce(i.pcore_idx, -1)"
                )
            else:
                column = _COLUMN_OF[mechanism]
                clauses.append(f"LEFT JOIN line_{mechanism} ON line_{mechanism}.text = i.{column}")
        return " ".join(clauses)

    @property
    def expression(self) -> str:
        """SQL for the line number of a row, null where nothing is known."""
        if not self._mapped:
            return "CAST(NULL AS INTEGER)"
        return "coalesce(" + ", ".join(f"line_{mechanism}.line" for mechanism in self._mapped) + ")"

    def layer_of(self) -> str:
        """SQL for the layer text of a row."""
        return "i.layer" if "layer" in self._mapped else "CAST(NULL AS VARCHAR)"

    def _register(self, mechanism: str, data: pa.Table) -> None:
        if data.num_rows:
            self._tables.connection.register(f"line_{mechanism}", data)
            self._mapped.append(mechanism)

    def _map_text(self, mechanism: str, column: str, resolve: Callable[[str], Line | None]) -> None:
        if not self._tables.has("Instruction", column):
            return
        texts, numbers = [], []
        query = f"SELECT DISTINCT {column} FROM Instruction WHERE {column} IS NOT NULL"
        for (text,) in self._tables.connection.execute(query).fetchall():
            line = resolve(text)
            if line is not None:
                texts.append(text)
                numbers.append(self.number(line))
        self._register(
            mechanism, pa.table({"text": pa.array(texts, pa.string()), "line": pa.array(numbers, pa.int32())})
        )

    def _line(self, chains: Iterable[CallStack], mechanism: str) -> Line | None:
        found = list(chains)
        if not found:
            return None
        sites = tuple(dict.fromkeys(chain.site_id for chain in found))
        return Line(sites, found[0].stack_id, mechanism)

    def _stack_frame(self, text: str) -> Line | None:
        if self._frames is None:
            return None
        ids = [int(number) for number in _NUMBERS.findall(text)]
        chains = [self._stacks.stack(self._frames.chain(number)) for number in self._frames.innermost(ids)]
        return self._line((chain for chain in chains if chain is not None), "stack_frame")

    def _location(self, mechanism: str) -> Callable[[str], Line | None]:
        def resolve(text: str) -> Line | None:
            chains = [self._stacks.stack([frame]) for frame in source_locations(text)]
            return self._line((chain for chain in chains if chain is not None), mechanism)

        return resolve

    def _hlo_attributes(self, text: str) -> Line | None:
        frame = hlo_location(text)
        chain = self._stacks.stack([frame]) if frame else None
        return self._line([chain], "hlo_attributes") if chain else None

    def _map_kernels(self) -> None:
        tables = self._tables
        if not (tables.has("Instruction", "kernel_instruction_name") and tables.has("KernelInstructions")):
            return
        frames = _kernel_frames(tables)
        places = tables.connection.execute(
            "SELECT DISTINCT coalesce(pcore_idx, -1), stack_frame_id, file_path, line_number FROM KernelInstructions"
        ).fetchall()
        rows: dict[str, list[object]] = {"pcore": [], "frame": [], "file": [], "number": [], "line": []}
        for pcore, frame, file, number in places:
            chain = self._stacks.stack(_kernel_chain(frames, pcore, frame, file, number))
            if chain is None:
                continue
            line = Line((chain.site_id,), chain.stack_id, "kernel")
            for name, value in zip(rows, (pcore, frame, file, number, self.number(line))):
                rows[name].append(value)
        kinds = (pa.int64(), pa.int64(), pa.string(), pa.int64(), pa.int32())
        places_table = pa.table({n: pa.array(v, k) for (n, v), k in zip(rows.items(), kinds)})
        tables.connection.register("kernel_places", places_table)
        found = tables.connection.sql(
            """
            SELECT k.kernel_instruction_name AS name, coalesce(k.pcore_idx, -1) AS pcore_idx, min(p.line) AS line
            FROM KernelInstructions AS k
            JOIN kernel_places AS p
              ON p.pcore = coalesce(k.pcore_idx, -1) AND p.frame IS NOT DISTINCT FROM k.stack_frame_id
             AND p.file IS NOT DISTINCT FROM k.file_path AND p.number IS NOT DISTINCT FROM k.line_number
            GROUP BY ALL
            """
        ).to_arrow_table()
        self._register("kernel", found)


_COLUMN_OF = {
    "stack_frame": "stack_frame_ids",
    "nki_location": "nki_source_location",
    "bir_location": "bir_debug_info_source_location",
    "hlo_attributes": "hlo_attrs",
    "layer": "layer",
}


def source_locations(text: str) -> list[Frame]:
    """Frames of a 'file:line' text, or of several separated by commas or semicolons; [] where it is none."""
    frames = []
    for piece in re.split(r"[;,]\s*", text.strip().strip("[]")):
        match = _LOCATION.match(piece.strip().strip("'\""))
        if match and int(match.group(2)) > 0:
            frames.append(Frame(match.group(1), int(match.group(2)), ""))
    return frames


def hlo_location(text: str) -> Frame | None:
    """Frame of hlo_attrs (a JSON object, or key=value text) with source_file and source_line."""
    try:
        value = json.loads(text)
    except ValueError:
        pairs = dict(re.findall(r"(source_file|source_line)\"?\s*[=:]\s*\"?([^\",}\s]+)", text))
        value = pairs
    if not isinstance(value, dict):
        return None
    if isinstance(value.get("metadata"), dict) and "source_file" not in value:
        value = value["metadata"]
    file, line = value.get("source_file"), str(value.get("source_line", ""))
    if not isinstance(file, str) or not file or not line.isdigit() or int(line) == 0:
        return None
    return Frame(file, int(line), "")


class _Frames:
    """StackFrame and its three lookup tables in memory. Ids are text in one table and numbers in the other: all cast."""

    def __init__(self, tables: ProfileTables) -> None:
        query = """
            SELECT TRY_CAST(f.id AS BIGINT), TRY_CAST(f.parent_frame_id AS BIGINT), n.name, fn.name, l.line_number
            FROM StackFrame AS f
            JOIN StackFrameFileLocation AS l ON TRY_CAST(l.id AS BIGINT) = TRY_CAST(f.file_location_id AS BIGINT)
            JOIN StackFrameFileName AS n ON TRY_CAST(n.id AS BIGINT) = TRY_CAST(l.file_name_id AS BIGINT)
            LEFT JOIN StackFrameFunctionName AS fn ON TRY_CAST(fn.id AS BIGINT) = TRY_CAST(l.function_name_id AS BIGINT)
        """
        self._frames: dict[int, tuple[int, Frame]] = {}
        for number, parent, file, function, line in tables.connection.execute(query).fetchall():
            if number is not None and file:
                self._frames[number] = (parent or 0, Frame(file, line or 0, function or ""))

    def _ancestors(self, number: int) -> list[int]:
        found: list[int] = []
        seen = {number}
        parent = self._frames[number][0] if number in self._frames else 0
        while parent in self._frames and parent not in seen:
            found.append(parent)
            seen.add(parent)
            parent = self._frames[parent][0]
        return found

    def innermost(self, ids: list[int]) -> list[int]:
        """The ids that exist and are no caller of another of them, in order."""
        known = [number for number in dict.fromkeys(ids) if number in self._frames]
        callers = {caller for number in known for caller in self._ancestors(number)}
        return [number for number in known if number not in callers]

    def chain(self, number: int) -> list[Frame]:
        """A frame and its callers, innermost first."""
        return [self._frames[each][1] for each in (number, *self._ancestors(number))]


_KernelFrame = tuple[int | None, str | None, int | None, str | None]


def _kernel_frames(tables: ProfileTables) -> dict[tuple[int, int], _KernelFrame]:
    query = """
        SELECT coalesce(pcore_idx, -1), stack_frame_id, parent_stack_frame_id, file_path, line_number,
               fully_qualified_function_name
        FROM KernelStackFrames
    """
    return {(row[0], row[1]): row[2:] for row in tables.connection.execute(query).fetchall()}


def _kernel_chain(
    frames: dict[tuple[int, int], _KernelFrame],
    pcore: int,
    frame: int | None,
    file: str | None,
    line: int | None,
) -> list[Frame]:
    """Frames of one kernel instruction: its own place first, then its callers."""
    chain: list[Frame] = []
    seen: set[int] = set()
    while frame is not None and (pcore, frame) in frames and frame not in seen:
        seen.add(frame)
        parent, frame_file, frame_line, function = frames[pcore, frame]
        if frame_file:
            chain.append(Frame(frame_file, frame_line or 0, function or ""))
        frame = parent
    if file and line:
        if chain and chain[0].file == file:
            chain[0] = Frame(file, line, chain[0].function)
        else:
            chain.insert(0, Frame(file, line, ""))
    return chain
