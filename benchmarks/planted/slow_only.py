"""A planted program as its author would have left it: the slow version alone, without comments, marks or the repaired branch."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TypeVar

_Node = TypeVar("_Node", bound=ast.AST)

SWITCH = "slow"
"""The parameter, variable or attribute of a program that chooses its version."""

_DRIVER = """

if __name__ == '__main__':
    from explorer import neuron_profile
    torch.set_num_threads({threads})
    with neuron_profile('run') as profile:
        main({steps}, profile.step)
"""


@dataclass(frozen=True)
class SlowProgram:
    """`text` of the file, the lines in it that stand for the marked ones, and those that the repair changes."""

    text: str
    lines: tuple[int, ...]
    repaired: tuple[int, ...]


def slow_only(source: str, fault_lines: tuple[int, ...], *, steps: int, threads: int = 1) -> SlowProgram:
    """The slow version of a planted program as a script that records itself into `run`, with the fault's lines in it."""
    tree = ast.parse(source)
    loaded = _names_loaded(tree)
    tree = _SlowVersion().visit(tree)
    _drop_constants(tree)
    while _drop_assignments(tree, loaded - _names_loaded(tree)):
        pass
    ast.fix_missing_locations(tree)
    text = ast.unparse(tree) + "\n"
    # Parsed again the tree is the same one, with the lines of the new text.
    pairs = [
        (old, new.lineno)
        for old, new in zip(ast.walk(tree), ast.walk(ast.parse(text)), strict=True)
        if isinstance(new, ast.stmt | ast.expr)
    ]
    return SlowProgram(
        text + _DRIVER.format(steps=steps, threads=threads),
        tuple(sorted({line for old, line in pairs if getattr(old, "lineno", None) in fault_lines})),
        tuple(sorted({line for old, line in pairs if getattr(old, "is_chosen", False)})),
    )


class _SlowVersion(ast.NodeTransformer):
    """Puts True for the switch, takes the branches that leaves, and removes the switch itself."""

    def visit_Module(self, node: ast.Module) -> ast.AST:
        if ast.get_docstring(node):
            del node.body[0]
        return self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.args.args = [argument for argument in node.args.args if argument.arg != SWITCH]
        if node.name == "program":
            node.name = "main"
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        node.args = [argument for argument in node.args if not _is_switch(argument)]
        return self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> ast.AST | None:
        return None if _is_switch(node.targets[0]) else self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return _chosen(ast.copy_location(ast.Constant(True), node)) if _is_switch(node) else node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if _is_switch(node):
            return _chosen(ast.copy_location(ast.Constant(True), node))
        return self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.op, ast.Not) and isinstance(node.operand, ast.Constant):
            return _chosen(ast.copy_location(ast.Constant(not node.operand.value), node))
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.test, ast.Constant):
            return _chosen(node.body if node.test.value else node.orelse)
        return node

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        if isinstance(node.test, ast.Constant):
            return [_chosen(child) for child in (node.body if node.test.value else node.orelse)]
        return node


def _chosen(node: _Node) -> _Node:
    """The node, marked with all in it as what the repaired version has otherwise."""
    for inside in ast.walk(node):
        if isinstance(inside, ast.stmt | ast.expr):
            inside.is_chosen = True  # type: ignore[union-attr]
    return node


def _is_switch(node: ast.AST) -> bool:
    return (isinstance(node, ast.Name) and node.id == SWITCH) or (
        isinstance(node, ast.Attribute) and node.attr == SWITCH
    )


def _names_loaded(tree: ast.AST) -> set[str]:
    return {
        node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    } | {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
    }


def _drop_constants(tree: ast.Module) -> None:
    """KIND, HELD_OUT and WALL_CLOCK say what is planted."""
    tree.body = [
        node
        for node in tree.body
        if not (isinstance(node, ast.Assign) and _target(node) in ("KIND", "HELD_OUT", "WALL_CLOCK"))
    ]


def _drop_assignments(tree: ast.AST, unused: set[str]) -> bool:
    """Remove what only the repaired version used. Returns whether anything was."""
    dropped = False
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            kept = [
                item
                for item in body
                if not (isinstance(item, ast.Assign) and _target(item) in unused)
                and not (
                    isinstance(item, ast.FunctionDef | ast.Import | ast.ImportFrom) and _only_of(item, unused)
                )
            ]
            dropped |= len(kept) < len(body)
            node.body = kept or [ast.copy_location(ast.Pass(), body[0])]  # type: ignore[attr-defined]
    return dropped


def _target(node: ast.Assign) -> str:
    target = node.targets[0]
    return (
        target.id
        if isinstance(target, ast.Name)
        else target.attr
        if isinstance(target, ast.Attribute)
        else ""
    )


def _only_of(node: ast.stmt, unused: set[str]) -> bool:
    if isinstance(node, ast.FunctionDef):
        return node.name in unused
    assert isinstance(node, ast.Import | ast.ImportFrom)
    return all((name.asname or name.name) in unused for name in node.names)
