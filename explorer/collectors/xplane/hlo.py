"""Source lines of HLO instructions, from the HloProto messages a profile carries.

By the field numbers of hlo.proto and xla_data.proto (openxla/xla). HloProto: hlo_module 1. HloModuleProto: name 1,
computations 3, id 5, stack_frame_index 25. HloComputationProto: instructions 2. HloInstructionProto: name 1, opcode 2,
metadata 7. OpMetadata: op_type 1, op_name 2, source_file 3, source_line 4, stack_frame_id 15, source_end_line 17.
StackFrameIndexProto: file_names 1, function_names 2, file_locations 3 (file 1, function 2, line 3), stack_frames 4
(location 1, parent 2); ids count from 1.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from explorer.collectors.call_stacks import Frame
from explorer.collectors.wire import WireError, fields, signed, text

MAX_FRAMES = 256


@dataclass(frozen=True, slots=True)
class Instruction:
    """One HLO instruction: what it is called in the program and the frames that made it, innermost first."""

    opcode: str
    op_name: str
    frames: tuple[Frame, ...]


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
        for computation in computations:
            for number, _, _, content in fields(computation):
                if number == 2 and content is not None:
                    self._instruction((label, name), content, frames)

    def _instruction(self, labels: tuple[str, str], data: memoryview, frames: _Frames) -> None:
        name = opcode = op_name = file = ""
        line = stack = 0
        for number, _, _, content in fields(data):
            if number == 1:
                name = text(content)
            elif number == 2:
                opcode = text(content)
            elif number == 7 and content is not None:
                for key, _, value, inner in fields(content):
                    if key == 2:
                        op_name = text(inner)
                    elif key == 3:
                        file = text(inner)
                    elif key == 4:
                        line = signed(value)
                    elif key == 15:
                        stack = signed(value)
        chain = frames.chain(stack)
        if not chain and file:
            chain = (Frame(file, line, ""),)
        for label in filter(None, labels):
            self.instructions.setdefault((label, name), Instruction(opcode, op_name, chain))


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
