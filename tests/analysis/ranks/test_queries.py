"""Every statement about a job says in its header what it returns, and returns that."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest

from explorer.analysis.ranks.query import query
from explorer.analysis.run import Run, open_run
from explorer.analysis.view import parse_view
from tests.analysis.ranks.job import Job

FOLDER = files("explorer.analysis.ranks") / "sql"
NAMES = sorted(entry.name.removesuffix(".sql") for entry in FOLDER.iterdir() if entry.name.endswith(".sql"))
PARAMETERS = {
    "clock_ends": {"most": 10},
    "pair_links": {"most": 10},
    "straggler_causes": {"ranks": [2], "late": [2, 2], "steps": [1, 3], "most": 5},
}
SCALARS = {
    "int32": "INTEGER",
    "int64": "BIGINT",
    "double": "DOUBLE",
    "string": "VARCHAR",
    "bool": "BOOLEAN",
    "list<l: int32>": "INTEGER[]",
    "list<element: int32>": "INTEGER[]",
    "list<child: int32>": "INTEGER[]",
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    job = Job(extra={(2, step): 300_000 for step in range(30)})
    return open_run(job.write(tmp_path_factory.mktemp("queries") / "run"))


@pytest.mark.parametrize("name", NAMES)
def test_columns_are_those_of_the_header(run: Run, name: str) -> None:
    view = parse_view(name, (FOLDER / f"{name}.sql").read_text())
    table = run.engine.sql(query(name), PARAMETERS.get(name)).arrow()
    found = [(field.name, SCALARS.get(str(field.type), str(field.type))) for field in table.schema]
    assert found == [(column.name, column.type) for column in view.columns]


@pytest.mark.parametrize("name", NAMES)
def test_each_is_used(name: str) -> None:
    folder = Path(str(FOLDER)).parent
    assert any(f'query("{name}")' in path.read_text() for path in folder.glob("*.py"))
