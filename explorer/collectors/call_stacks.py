"""Source lines and call chains met in a source, each kept once: the dimension tables `sites` and `stacks`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from explorer.collectors.code_path import code_path
from explorer.model.ids import site_id, stack_id
from explorer.store.writer import RunWriter

MAX_LINE = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame as a source recorded it."""

    file: str
    line: int
    function: str
    code: str | None = None


@dataclass(frozen=True, slots=True)
class CallStack:
    """A stored chain: its id and its innermost user line (its innermost line where no frame is user code)."""

    stack_id: int
    site_id: int
    has_user_code: bool


class CallStacks:
    """Collects frames and chains and writes them once.

    Args:
        root: folder that user paths are written relative to, "" to keep them as recorded.
    """

    def __init__(self, root: str = "") -> None:
        self._root = root
        self._sites: dict[int, tuple[str, int, str, str | None, bool]] = {}
        self._by_frame: dict[Frame, int] = {}
        self._stacks: dict[tuple[int, ...], CallStack] = {}

    def site(self, frame: Frame) -> int:
        """Id of a frame's line."""
        known = self._by_frame.get(frame)
        if known is not None:
            return known
        path = code_path(frame.file, self._root)
        line = min(max(frame.line, 0), MAX_LINE)
        number = site_id(path.file, line, frame.function)
        self._by_frame[frame] = number
        self._sites.setdefault(number, (path.file, line, frame.function, frame.code, path.is_user))
        return number

    def is_user(self, site: int) -> bool:
        """Whether a site of this collection is user code."""
        return self._sites[site][4]

    def stack(self, frames: Iterable[Frame]) -> CallStack | None:
        """Store a chain, innermost frame first; None for an empty one."""
        sites = tuple(self.site(frame) for frame in frames)
        if not sites:
            return None
        known = self._stacks.get(sites)
        if known is None:
            user = next((site for site in sites if self._sites[site][4]), None)
            known = CallStack(stack_id(sites), sites[0] if user is None else user, user is not None)
            self._stacks[sites] = known
        return known

    def write(self, writer: RunWriter) -> None:
        """Write everything collected."""
        if self._sites:
            file, line, function, code, is_user = zip(*self._sites.values())
            writer.write(
                "sites",
                {
                    "site_id": list(self._sites),
                    "file": file,
                    "line": line,
                    "function": function,
                    "code": code,
                    "is_user": is_user,
                },
            )
        if self._stacks:
            rows = [
                (chain.stack_id, depth, site)
                for sites, chain in self._stacks.items()
                for depth, site in enumerate(sites)
            ]
            stack, depth, site = zip(*rows)
            writer.write("stacks", {"stack_id": stack, "depth": depth, "site_id": site})
