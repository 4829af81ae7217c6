"""The qualified name of the function around a source line, for lines that are known by number only."""

from __future__ import annotations

import ast
import linecache


class QualifiedNames:
    """Answers from the parsed file, as code objects would name themselves."""

    def __init__(self) -> None:
        self._spans: dict[str, list[tuple[int, int, str]]] = {}

    def at(self, file: str, line: int, otherwise: str) -> str:
        """Qualified name of the innermost function that holds the line; `otherwise` where the file cannot be parsed."""
        spans = self._spans.get(file)
        if spans is None:
            spans = self._spans[file] = _spans("".join(linecache.getlines(file)))
        inside = [(last - first, name) for first, last, name in spans if first <= line <= last]
        return min(inside)[1] if inside else otherwise


def _spans(text: str) -> list[tuple[int, int, str]]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return []
    spans: list[tuple[int, int, str]] = []

    def walk(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                name = prefix + child.name
                first = min([child.lineno, *(decorator.lineno for decorator in child.decorator_list)])
                spans.append((first, child.end_lineno or child.lineno, name))
                walk(child, f"{name}.<locals>.")
            elif isinstance(child, ast.ClassDef):
                walk(child, f"{prefix}{child.name}.")
            else:
                walk(child, prefix)

    walk(tree, "")
    return spans
