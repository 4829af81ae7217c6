"""Imports go one way: model <- store <- collectors, analysis <- agent, report, tui, cli; and starting stays light."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "explorer"

FACES = {"agent", "report", "tui", "cli"}
ALLOWED: dict[str, set[str]] = {
    "model": {"model"},
    "store": {"store", "model"},
    "collectors": {"collectors", "store", "model"},
    "analysis": {"analysis", "store", "model"},
    "agent": {"agent", "analysis", "collectors", "store", "model"},
    "report": {"report", "analysis", "store", "model"},
    "tui": {"tui", "analysis", "store", "model"},
    "cli": {"cli", "agent", "report", "tui", "analysis", "collectors", "store", "model"},
}
"""Which rooms of the house each room may use."""

HEAVY = {"torch", "duckdb", "pandas", "pyarrow", "textual", "plotly", "numpy", "mcp", "dask"}
"""Packages that take long to load; the command line and `import explorer` load them only when a verb needs them."""


def modules() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py") if "bootstrap" not in path.parts)


def imported(path: Path, *, top_level_only: bool = False) -> Iterator[tuple[int, str]]:
    """Every imported module of a file with its line; with `top_level_only`, those that loading it really loads."""
    tree = ast.parse(path.read_text())
    package = ".".join(path.relative_to(ROOT).with_suffix("").parts[:-1])
    nodes = _loaded(tree) if top_level_only else ast.walk(tree)
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package.rsplit(".", node.level - 1)[0] if node.level else ""
            name = ".".join(filter(None, [base, node.module or ""]))
            if name == "explorer":
                yield from ((node.lineno, f"explorer.{alias.name}") for alias in node.names)
            else:
                yield node.lineno, name


def _loaded(tree: ast.AST) -> Iterator[ast.AST]:
    """Nodes that run when the module is loaded: not inside functions, nor under `if TYPE_CHECKING`."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        yield child
        yield from _loaded(child)


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_down(path: Path) -> None:
    room = path.relative_to(PACKAGE).parts[0]
    if room not in ALLOWED:
        assert room in ("__init__.py", "__main__.py", "pytest_plugin.py"), f"{room} has no place in the house"
        return
    wrong = [
        f"line {line}: {name}"
        for line, name in imported(path)
        if name.startswith("explorer.")
        and name.split(".")[1] in ALLOWED
        and name.split(".")[1] not in ALLOWED[room]
    ]
    assert not wrong, f"{room} may import {', '.join(sorted(ALLOWED[room]))} only"


def test_only_capture_imports_torch() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in modules()
        if not {"capture", "lines"} & set(path.parts) and path.name != "neuron_profile.py"
        for line, name in imported(path, top_level_only=True)
        if name.split(".")[0] == "torch"
    ]
    assert not wrong


def test_command_line_modules_load_nothing_heavy() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{line} {name}"
        for path in modules()
        if path.relative_to(PACKAGE).parts[0] == "cli"
        for line, name in imported(path, top_level_only=True)
        if name.split(".")[0] in HEAVY
    ]
    assert not wrong, "import it inside the function that needs it"


@pytest.mark.parametrize("statement", ["import explorer", "from explorer.cli.main import VERBS"])
def test_importing_loads_nothing_heavy(statement: str) -> None:
    code = f"import sys; {statement}; print(sorted({HEAVY!r} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"


def test_screens_hold_no_sql() -> None:
    """Statements live in the analysis layer; screens ask it."""
    starts = ("SELECT ", "WITH ", "\nSELECT", "\n    SELECT", "CREATE ", "INSERT ")
    wrong = []
    for path in modules():
        if path.relative_to(PACKAGE).parts[0] not in ("tui", "report", "cli"):
            continue
        tree = ast.parse(path.read_text())
        docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
                text = node.value
                if text.startswith(starts) and " FROM " in text.replace("\n", " ") and "Try" not in text:
                    wrong.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert not [where for where in wrong if "tui/screens/sql" not in where]
