"""Source lines of HLO instructions, from the HloProto messages a profile carries.

By the field numbers of hlo.proto and xla_data.proto (openxla/xla). HloProto: hlo_module 1. HloModuleProto: name 1,
computations 3, id 5, stack_frame_index 25. HloComputationProto: instructions 2, id 5. HloInstructionProto: name 1, opcode 2,
metadata 7, called_computation_ids 38. OpMetadata: op_type 1, op_name 2, source_file 3, source_line 4, stack_frame_id 15, source_end_line 17.
StackFrameIndexProto: file_names 1, function_names 2, file_locations 3 (file 1, function 2, line 3), stack_frames 4
(location 1, parent 2); ids count from 1.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from explorer.collectors.call_stacks import Frame
from explorer.collectors.wire import WireError, fields, signed, text, varints

MAX_FRAMES = 256
_FREE = ("parameter", "constant", "bitcast", "tuple", "get-tuple-element")
"""Instructions that cost nothing inside a fusion"""


@dataclass(frozen=True, slots=True)
class Instruction:
    """One HLO instruction: what it is called in the program and the frames that made it, innermost first.

    `lines` are the innermost frames of the instructions it fuses, with how many of them each one made.
    """

    opcode: str
    op_name: str
    frames: tuple[Frame, ...]
    lines: tuple[tuple[Frame, int], ...] = ()


@dataclass(slots=True)
class _Frames:
    files: list[str] = field(default_factory=list)
    functions: list[str] = field(default_factory=list)
    locations: list[tuple[int, int, int]] = field(default_factory=list)
    frames: list[tuple[int, int]] = field(default_factory=list)

    def chain(self, frame: int) -> tuple[Frame, ...]:
        found: list[Frame] = []
        while 0 < frame <= len(self.frames) and len(found) < MAX_FRAMES:
            location, frame = self.frames[frame - 1]
            if 0 < location <= len(self.locations):
                file, function, line = self.locations[location - 1]
                found.append(Frame(_at(self.files, file), line, _at(self.functions, function)))
        return tuple(found)


def _at(texts: list[str], place: int) -> str:
    return texts[place - 1] if 0 < place <= len(texts) else ""


@dataclass(slots=True)
class Modules:
    """Instructions of every module of a profile, by program id or module name, and instruction name."""

    instructions: dict[tuple[str, str], Instruction] = field(default_factory=dict)
    damaged: int = 0

    def add(self, data: bytes, label: str = "") -> None:
        """Read one HloProto; `label` is its 'name(program id)'. Damage costs the rest of this module and is counted."""
        try:
            for number, _, _, content in fields(memoryview(data)):
                if number == 1 and content is not None:
                    self._module(content, label)
        except WireError:
            self.damaged += 1

    def find(self, module: str, program: int | None, instruction: str) -> Instruction | None:
        """The instruction of a program; by the module's name where the program is not known."""
        name = module[: module.rindex("(")] if module.endswith(")") and "(" in module else module
        labels = (module, f"{name}({program})", name)
        return next(
            (found for label in labels if (found := self.instructions.get((label, instruction)))), None
        )

    def files(self) -> set[str]:
        """Source files of all instructions."""
        return {frame.file for found in self.instructions.values() for frame in found.frames}

    def _module(self, data: memoryview, label: str) -> None:
        name, frames = "", _Frames()
        computations: list[memoryview] = []
        for number, _, _, content in fields(data):
            if content is None:
                continue
            if number == 1:
                name = text(content)
            elif number == 3:
                computations.append(content)
            elif number == 25:
                frames = _parse_frames(content)
        found: list[_Raw] = []
        bodies: dict[int, list[_Raw]] = {}
        for computation in computations:
            identity, body = 0, []
            for number, _, value, content in fields(computation):
                if number == 5:
                    identity = value
                elif number == 2 and content is not None:
                    body.append(_parse_instruction(content, frames))
            bodies[identity] = body
            found += body
        for raw in found:
            made = _instruction(raw, bodies)
            for known in filter(None, (label, name)):
                self.instructions.setdefault((known, raw.name), made)


@dataclass(slots=True)
class _Raw:
    name: str = ""
    opcode: str = ""
    op_name: str = ""
    frames: tuple[Frame, ...] = ()
    called: list[int] = field(default_factory=list)


def _instruction(raw: _Raw, bodies: dict[int, list[_Raw]]) -> Instruction:
    """A fusion computes the lines of what it fuses; without a line of its own it takes the most frequent of them."""
    lines: Counter[Frame] = Counter()
    chains: dict[Frame, tuple[Frame, ...]] = {}
    if raw.opcode == "fusion":
        for identity in raw.called:
            for inner in bodies.get(identity, ()):
                if inner.frames and inner.opcode not in _FREE:
                    lines[inner.frames[0]] += 1
                    chains.setdefault(inner.frames[0], inner.frames)
    frames = raw.frames
    if not frames and lines:
        frames = chains[lines.most_common(1)[0][0]]
    return Instruction(raw.opcode, raw.op_name, frames, tuple(lines.items()) if len(lines) > 1 else ())


def _parse_instruction(data: memoryview, frames: _Frames) -> _Raw:
    raw = _Raw()
    file = ""
    line = stack = 0
    for number, _, value, content in fields(data):
        if number == 1:
            raw.name = text(content)
        elif number == 2:
            raw.opcode = text(content)
        elif number == 38:
            raw.called += varints(content) if content is not None else [value]
        elif number == 7 and content is not None:
            for key, _, inner, part in fields(content):
                if key == 2:
                    raw.op_name = text(part)
                elif key == 3:
                    file = text(part)
                elif key == 4:
                    line = signed(inner)
                elif key == 15:
                    stack = signed(inner)
    raw.frames = frames.chain(stack) or ((Frame(file, line, ""),) if file else ())
    return raw


def _parse_frames(data: memoryview) -> _Frames:
    found = _Frames()
    for number, _, _, content in fields(data):
        if content is None:
            continue
        if number == 1:
            found.files.append(text(content))
        elif number == 2:
            found.functions.append(text(content))
        elif number in (3, 4):
            values = {key: signed(value) for key, _, value, _ in fields(content)}
            if number == 3:
                found.locations.append((values.get(1, 0), values.get(2, 0), values.get(3, 0)))
            else:
                found.frames.append((values.get(1, 0), values.get(2, 0)))
    return found
