"""Sites and stacks of a capture: content-hashed ids for call chains, each row written once per process."""

from __future__ import annotations

import linecache
from types import CodeType
from typing import Any

import numpy as np
import numpy.typing as npt

from explorer.collectors.capture.compiled_modules import Traced
from explorer.collectors.capture.fx_lines import GENERATED, FxLines
from explorer.collectors.capture.qualified_names import QualifiedNames
from explorer.collectors.capture.source_paths import SourcePaths
from explorer.collectors.lines.replay import Chains
from explorer.collectors.lines.user_code import USER, UserCode
from explorer.model import ids

I64 = npt.NDArray[np.int64]


class Dimensions:
    """Turns nodes of the call-chain tree into stack ids, responsible sites and precision."""

    def __init__(
        self, chains: Chains, user_code: UserCode, paths: SourcePaths, fx: FxLines | None = None
    ) -> None:
        self.chains = chains
        self._fx = fx
        self.generated: list[bool] = [False]
        """By node: whether its line was translated from a graph's generated code."""
        self.traced_modules: dict[int, Traced] = {}
        """By node of such code, the module that its graph node was traced in."""
        self.from_stacks = False
        """Whether lines come from the profiler's own stacks."""
        self._user_code = user_code
        self._paths = paths
        self._names = QualifiedNames()
        self._kinds: dict[str, bool] = {}
        self._site_of_frame: dict[tuple[int, int, bool], int] = {}
        self._known_sites: set[int] = set()
        self._known_stacks: set[int] = set()
        self._new_sites: list[dict[str, Any]] = []
        self._new_stacks: list[tuple[int, int, int]] = []
        # Per node: stack id, responsible site, whether only its function is known, whether the site is user code.
        self._node_sites: list[tuple[int, ...]] = [()]
        self.stacks: list[int] = [0]
        self.sites: list[int] = [0]
        self.coarse: list[bool] = [False]
        self.guess: list[bool] = [False]
        """By node: whether its line is likely, but not known."""
        self._node_user: list[bool] = [False]
        self.user_files: set[str] = set()

    def grow(self) -> None:
        """Take in the nodes that were added to the tree."""
        chains = self.chains
        for node in range(len(self.stacks), len(chains.parents)):
            code = chains.codes[node]
            assert code is not None
            parent = chains.parents[node]
            if code.co_filename.startswith(GENERATED):
                self._grow_generated(code, chains.lines[node], parent)
                continue
            self.generated.append(False)
            own = self._site(code, chains.lines[node], chains.coarse[node])
            sites = (own, *self._node_sites[parent])
            self._node_sites.append(sites)
            self.stacks.append(self.add_stack(sites))
            if self._is_user(code) or not self._node_user[parent]:
                self.sites.append(own)
                self.coarse.append(chains.coarse[node])
                self.guess.append(chains.guess[node])
            else:
                # A library frame beneath a project frame: the project's line is what its owner can change.
                self.sites.append(self.sites[parent])
                self.coarse.append(self.coarse[parent])
                self.guess.append(self.guess[parent])
            self._node_user.append(self._is_user(code) or self._node_user[parent])

    def _grow_generated(self, code: CodeType, line: int, parent: int) -> None:
        """A node of FX's code: the line its graph node was traced from, else the compiled function around it."""
        chain = self._fx.chain(code, line) if self._fx is not None else []
        self._node_sites.append(self._node_sites[parent])
        self.stacks.append(self.stacks[parent])
        self.sites.append(self.responsible(chain) if chain else self.sites[parent])
        self.coarse.append(not chain)
        self.guess.append(False)
        self.generated.append(bool(chain))
        if self._fx is not None and (traced := self._fx.module(code, line)) is not None:
            self.traced_modules[len(self.stacks) - 1] = traced
        self._node_user.append(self._node_user[parent])

    def arrays(self) -> tuple[I64, I64, npt.NDArray[np.bool_]]:
        """(stack id, responsible site, coarse) by node; 0 where there is none."""
        self.grow()
        return (
            np.array(self.stacks, dtype=np.int64),
            np.array(self.sites, dtype=np.int64),
            np.array(self.coarse, dtype=bool),
        )

    def at_definition(self) -> npt.NDArray[np.bool_]:
        """By node: whether it stands at the first line of its function, as compiled code does all along."""
        chains = self.chains
        first = [
            code is not None and line == code.co_firstlineno for code, line in zip(chains.codes, chains.lines)
        ]
        return np.array(first, dtype=bool)

    def _is_user(self, code: CodeType) -> bool:
        return self.is_user_file(code.co_filename)

    def _site(self, code: CodeType, line: int, coarse: bool) -> int:
        key = (id(code), line, coarse)
        found = self._site_of_frame.get(key)
        if found is None:
            last = max((at for _, _, at in code.co_lines() if at), default=line) if coarse else None
            found = self.add_site(code.co_filename, line, code.co_qualname, last)
            self._site_of_frame[key] = found
        return found

    def add_site(self, file: str, line: int, function: str, end_line: int | None = None) -> int:
        """Id of a source line, made known to the run."""
        name = self._paths.name(file)
        site = ids.site_id(name, line, function, end_line)
        if site not in self._known_sites:
            self._known_sites.add(site)
            kind = self.is_user_file(file)
            self.user_files.add(file)
            text = linecache.getline(file, line).strip() or None
            self._new_sites.append(
                {
                    "site_id": site,
                    "file": name,
                    "line": line,
                    "end_line": end_line,
                    "function": function,
                    "code": text,
                    "is_user": kind,
                }
            )
        return site

    def responsible(self, chain: list[tuple[str, int, str]]) -> int:
        """Site of the innermost user line of a chain (file, line, plain function name), innermost last; of the innermost
        line outright where none is the user's."""
        for file, line, function in reversed(chain):
            if self.is_user_file(file):
                return self.add_site(file, line, self._names.at(file, line, function))
        file, line, function = chain[-1]
        return self.add_site(file, line, self._names.at(file, line, function))

    def qualified_name(self, file: str, line: int, otherwise: str) -> str:
        """Qualified name of the function around a line."""
        return self._names.at(file, line, otherwise)

    def is_user_file(self, file: str) -> bool:
        """Whether a file is the user's code."""
        known = self._kinds.get(file)
        if known is None:
            known = self._kinds[file] = self._user_code.kind(file) == USER
        return known

    def add_stack(self, sites: tuple[int, ...]) -> int:
        """Id of a chain of sites, innermost first, made known to the run."""
        stack = ids.stack_id(sites)
        if stack not in self._known_stacks:
            self._known_stacks.add(stack)
            self._new_stacks.extend((stack, depth, site) for depth, site in enumerate(sites))
        return stack

    def take(self) -> tuple[list[dict[str, Any]], dict[str, list[int]] | None]:
        """New rows of sites and stacks since the last call."""
        sites, self._new_sites = self._new_sites, []
        rows, self._new_stacks = self._new_stacks, []
        if not rows:
            return sites, None
        stack, depth, site = zip(*rows)
        return sites, {"stack_id": list(stack), "depth": list(depth), "site_id": list(site)}
